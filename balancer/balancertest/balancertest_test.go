package balancertest_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/balancertest"
	"github.com/trunklb/trunk/leastconn"
)

const fiveOneOne = `upstream u { server a weight=5; server b; server c; }`

// The README's example.
func TestRouting(t *testing.T) {
	lb := balancertest.New(t, fiveOneOne)
	lb.WantPicks("a a b a c a a")
	lb.Fail("a")
	lb.WantNone("a", 10*time.Second)
	lb.Advance(11 * time.Second)
	lb.WantShare(700, "a", 5.0/7, .01)
}

func TestWrongPicksAreToldWithTheDecision(t *testing.T) {
	says(t, `
the picks differ from the 3rd on:
  want a a c a b a a
  got  a a b a c a a
           ^
it was decided so:
  round robin, try 1 (3 left): b, first of equal current weights
    a weight=5: conns 0, cw -4+5=1
    b weight=1: conns 0, cw 2+1-7=-4  <- taken
    c weight=1: conns 0, cw 2+1=3`,
		func(t testing.TB) { balancertest.New(t, fiveOneOne).WantPicks("a a c a b a a") })

	says(t, `
the picks differ from the 2nd on:
  want alpha:8080 alpha:8080
  got  alpha:8080 b
                  ^^^^^^^^^^
it was decided so:
  round robin, try 1 (2 left): b, greatest current weight
    alpha:8080 weight=1: conns 0, cw -1+1=0
    b weight=1: conns 0, cw 1+1-2=0  <- taken`,
		func(t testing.TB) {
			balancertest.New(t, `upstream u { server alpha:8080; server b; }`).WantPicks("alpha:8080 alpha:8080")
		})
}

func TestNobodyIsAPick(t *testing.T) {
	lb := balancertest.New(t, `upstream u { server a; server b; server c down; }`)
	lb.Fail("a")
	lb.Fail("b")
	lb.WantPicks("- -")
	lb.Advance(11 * time.Second)
	lb.WantPicks("b b a")

	says(t, `
the picks differ from the 1st on:
  want a
  got  -
       ^
it was decided so:
  round robin, try 1 (3 left): no live upstreams
    a weight=1: failed 1 of 1, probe in 10s
    b weight=1: failed 1 of 1, probe in 10s
    c weight=1: down
    d weight=1: backup, full, 1 of 1`,
		func(t testing.TB) {
			lb := balancertest.New(t, `upstream u { server a; server b; server c down; server d max_conns=1 backup; }`)
			lb.Fail("a")
			lb.Fail("b")
			lb.Hold("d")
			lb.Advance(time.Second)
			lb.WantPicks("a")
		})
}

func TestAWrongShareIsToldWithAllShares(t *testing.T) {
	says(t, `
a got 5 of 7 picks, 71.4%; want 60.0%, give or take 1.0%
  a 5, 71.4%
  b 1, 14.3%
  c 1, 14.3%
the last that it got was decided so:
  round robin, try 1 (3 left): a, greatest current weight
    a weight=5: conns 0, cw 2+5-7=0  <- taken
    b weight=1: conns 0, cw -1+1=0
    c weight=1: conns 0, cw -1+1=0`,
		func(t testing.TB) { balancertest.New(t, fiveOneOne).WantShare(7, "a", .6, .01) })

	f := run(func(t testing.TB) { balancertest.New(t, fiveOneOne).WantShare(7, "b", .5, .01) })
	require.Len(t, f.messages, 1)
	require.Contains(t, f.messages[0], "the last that another got was decided so:")
}

func TestAPeerThatShouldHaveGotNothing(t *testing.T) {
	says(t, `
a got 1 of 14 picks in 14s, the first after 13s; want none
it was decided so:
  round robin, try 1 (2 left): a, first of equal current weights
    a weight=1: conns 0, cw 0+1-2=-1, failed 1 of 1  <- taken
    b weight=1: conns 0, cw 0+1=1`, func(t testing.TB) {
		lb := balancertest.New(t, `upstream u { server a; server b; }`)
		lb.Fail("a")
		lb.WantNone("a", 14*time.Second)
	})
}

// The last step of WantNone may be shorter than a second.
func TestWantNoneMovesTheClockByExactlySoMuch(t *testing.T) {
	lb := balancertest.New(t, `upstream u { server a; server b down; }`)
	before := lb.Now()
	lb.WantNone("b", 2500*time.Millisecond)
	require.Equal(t, 2500*time.Millisecond, lb.Now().Sub(before))
	require.Equal(t, 3, lb.With(balancer.Input{}).Decision().Time.Round(time.Second).Second())
}

func TestRecover(t *testing.T) {
	lb := balancertest.New(t, `upstream u { server a weight=2 max_fails=2 fail_timeout=30s; server b; }`)
	lb.Recover("a") // nothing to do
	require.Nil(t, lb.Decision())

	before := lb.Now()
	lb.Fail("a")
	lb.Fail("a")
	lb.WantNone("a", 10*time.Second)
	lb.Recover("a")
	require.Equal(t, 31*time.Second, lb.Now().Sub(before), "fail_timeout, and a second more")
	for _, s := range lb.Upstream().Snapshot().Peers {
		require.Zero(t, s.Fails, s.Server.Name)
	}
	lb.WantShare(300, "a", 2.0/3, .02)
}

// In a finer unit of time a peer comes back sooner.
func TestRecoverInTheUnitOfTheClock(t *testing.T) {
	lb := balancertest.NewConfig(t, balancer.Config{
		Servers:    []balancer.Server{{Addr: "a", FailTimeout: 50 * time.Millisecond}, {Addr: "b"}},
		Resolution: 10 * time.Millisecond,
	})
	before := lb.Now()
	lb.Fail("a")
	lb.WantPicks("b b")
	lb.Recover("a")
	require.Equal(t, 60*time.Millisecond, lb.Now().Sub(before))
}

func TestHold(t *testing.T) {
	c := balancertest.Config(t, `upstream u { server a weight=2; server b; }`)
	c.Method = leastconn.New()
	lb := balancertest.NewConfig(t, c)
	release := lb.Hold("a")
	lb.WantPicks("b b b") // 0/1 is less than 1/2
	release()
	release() // does nothing
	lb.WantPicks("b a a")

	full := balancertest.New(t, `upstream u { server a max_conns=1; server b; }`)
	full.Hold("a") // until the test ends
	full.WantPicks("b b b")
}

func TestEveryRequestIsAnotherClientUnlessWithSaysOtherwise(t *testing.T) {
	lb := balancertest.New(t, `upstream u { hash $arg_user consistent; server a; server b; server c; }`)
	lb.WantShare(3000, "a", 1.0/3, .06)
	user := lb.With(balancer.Input{Key: "user-42"})
	home := user.Pick()
	user.WantPicks(strings.Repeat(home+" ", 20))
	user.WantShare(20, home, 1, 0)
	require.Equal(t, "user-42", lb.Decision().Key)

	ip := balancertest.New(t, `upstream u { ip_hash; server a; server b; server c; }`)
	ip.WantShare(3000, "a", 1.0/3, .05)
	home = ip.With(balancer.Input{Client: netip.MustParseAddr("192.0.2.1")}).Pick()
	ip.With(balancer.Input{Client: netip.MustParseAddr("192.0.2.77")}).WantPicks(home + " " + home)

	// Two upstreams alike see the same clients.
	one, two := balancertest.New(t, `upstream u { random; server a; server b; }`), balancertest.New(t, `upstream u { random; server a; server b; }`)
	for range 50 {
		require.Equal(t, one.Pick(), two.Pick())
	}
}

// Names are told as they were written, whatever nginx makes of them.
func TestNames(t *testing.T) {
	lb := balancertest.New(t, `upstream u { server a; server b:80; server 10.0.0.1; server unix:/run/c.sock; }`)
	lb.WantPicks("a b:80 10.0.0.1 unix:/run/c.sock")
	lb.WantPicks("a:80 b:80 10.0.0.1:80 unix:/run/c.sock") // the addresses will do
	require.Equal(t, "a", lb.Pick())

	says(t, `balancertest: no server is named "x"; there are a, b`, func(t testing.TB) {
		balancertest.New(t, `upstream u { server a; server b; }`).WantPicks("a x")
	})
}

func TestWhatEndsTheTest(t *testing.T) {
	tests := []struct {
		name string
		test func(t testing.TB)
		want string
	}{
		{"a text that nginx refuses", func(t testing.TB) { balancertest.New(t, `upstream u { server a wait=5; }`) },
			`invalid parameter "wait=5"`},
		{"no block", func(t testing.TB) { balancertest.New(t, ``) },
			"the text has 0 upstream blocks, and exactly one is wanted"},
		{"a config that balancer refuses", func(t testing.TB) {
			balancertest.NewConfig(t, balancer.Config{Servers: []balancer.Server{{Addr: "a", Weight: -1}}})
		}, "servers[0].Weight: must be at least 1"},
		{"a peer that cannot be chosen", func(t testing.TB) {
			balancertest.New(t, `upstream u { server a; server b down; }`).Fail("b")
		}, "Fail: b was not chosen in 1040 picks; the last was decided so:\n  round robin, try 1 (1 left): a, greatest current weight"},
		{"an end that never comes", func(t testing.TB) {
			lb := balancertest.NewConfig(t, balancer.Config{Servers: []balancer.Server{{Addr: "a", FailTimeout: 1<<63 - 1}, {Addr: "b"}}})
			lb.Fail("a")
			lb.Recover("a")
		}, "the fail_timeout of a never ends"},
		{"a clock that stands still", func(t testing.TB) {
			lb := balancertest.NewConfig(t, balancer.Config{Servers: []balancer.Server{{Addr: "a"}},
				Clock: func() time.Duration { return time.Hour }})
			lb.Advance(1)
		}, "it is no clock of a synctest bubble"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := run(test.test)
			require.True(t, f.fatal)
			require.Contains(t, strings.Join(f.messages, "\n"), test.want)
		})
	}
}

// What is reconstructed of the decision is what the methods have done.
func TestDecisionsOfTheMethods(t *testing.T) {
	tests := []struct{ method, want string }{
		{"", "round robin, try 1 (2 left): a, first of equal current weights"},
		{"least_conn;", "least_conn, try 1 (2 left): a, tie settled by the trunk"},
		{"hash $arg_k;", `hash $arg_k, try 1 (2 left), key "client-1": %s, hash range`},
		{"hash $arg_k consistent;", `hash $arg_k consistent, try 1 (2 left), key "client-1": %s, ring point`},
		{"ip_hash;", `ip_hash, try 1 (2 left), client "159.55.121.1": %s, address hash`},
		{"random;", "random, try 1 (2 left): %s, drawn"},
		{"random two;", "random two least_conn, try 1 (2 left): %s, less loaded of two drawn"},
		{"least_time header;", "least_time header, try 1 (2 left): a, tie settled by the trunk"},
	}
	for _, test := range tests {
		lb := balancertest.New(t, "upstream u { "+test.method+" server a; server b; }")
		got := lb.Pick()
		want := test.want
		if strings.Contains(want, "%s") {
			want = fmt.Sprintf(want, got)
		}
		require.Equal(t, want, strings.Split(lb.Decision().String(), "\n")[0])
	}
	lb := balancertest.New(t, "upstream u { server a; }")
	lb.Pick()
	require.Contains(t, lb.Decision().String(), "a, only peer")
}
