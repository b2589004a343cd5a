package balancertest_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/balancertest"
)

// An example has no testing.T: this one prints what a test would say.
type printing struct{ testing.TB }

func (printing) Helper()                      {}
func (printing) Cleanup(func())               {}
func (printing) Errorf(s string, args ...any) { fmt.Printf(s+"\n", args...) }
func (printing) Fatalf(s string, args ...any) { panic(fmt.Sprintf(s, args...)) }

var t = printing{}

// Five to one to one; then a fails, and is out for its fail timeout.
func ExampleNew() {
	lb := balancertest.New(t, `upstream u { server a weight=5; server b; server c; }`)
	lb.WantPicks("a a b a c a a")

	lb.Fail("a")
	lb.WantNone("a", 10*time.Second)

	lb.Advance(11 * time.Second)
	lb.WantShare(700, "a", 5.0/7, .01)
	// Output:
}

// A wrong expectation is told with the decision of the first pick that differs.
func ExampleLB_WantPicks() {
	lb := balancertest.New(t, `upstream u { server a weight=5; server b; server c; }`)
	lb.WantPicks("a a a b c a a")
	// Output:
	// the picks differ from the 3rd on:
	//   want a a a b c a a
	//   got  a a b a c a a
	//            ^
	// it was decided so:
	//   round robin, try 1 (3 left): b, first of equal current weights
	//     a weight=5: conns 0, cw -4+5=1
	//     b weight=1: conns 0, cw 2+1-7=-4  <- taken
	//     c weight=1: conns 0, cw 2+1=3
}

// A key stays with its peer.
func ExampleLB_With() {
	lb := balancertest.New(t, `upstream u { hash $arg_user consistent; server a; server b; server c; }`)
	user := lb.With(balancer.Input{Key: "user-42"})
	fmt.Println(user.Pick(), user.Pick(), user.Pick())

	lb.WantShare(3000, "a", 1.0/3, .05) // other users
	// Output:
	// a a a
}

// least_conn looks at what the peers hold.
func ExampleLB_Hold() {
	lb := balancertest.New(t, `upstream u { least_conn; server a weight=2; server b; }`)
	release := lb.Hold("a")
	lb.WantPicks("b b b")
	release()
	lb.WantPicks("b a a")
	// Output:
}

// Retries, without a socket.
func ExampleBackends() {
	lb := balancertest.New(t, `upstream u { server a; server b; }`)
	backends := lb.Backends().
		Script("a", balancertest.Answer{Err: balancertest.Refused}).
		Script("b", balancertest.Answer{Body: "hello"})

	client := &http.Client{Transport: lb.Upstream().RoundTripper(backends)}
	resp, err := client.Get("http://u/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s, after %s\n", body, backends.Asked())
	// Output:
	// hello, after [a b]
}
