package sticky_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// A client comes back with the cookie that it was given, and is bound to its peer.
// Package balancer does all this; here it is done by hand.
func Example() {
	servers := []peer.Server{
		{Addr: "10.0.0.1:8080", Route: "a"},
		{Addr: "10.0.0.2:8080", Route: "b"},
	}
	clock := func() time.Duration { return 1_700_000_000 * time.Second }
	up, err := peer.New(servers, sticky.Over(leastconn.New()), &peer.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	binding, err := sticky.New(sticky.Cookie{Name: "srv", Expires: time.Hour, Path: "/"}, &sticky.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, cookies := range []string{"", "theme=dark; srv=b", "srv=b", "srv=forged"} {
		values := func(string) string { // of $cookie_srv
			_, value, _ := strings.Cut(cookies, "srv=")
			return value
		}
		var r peer.Request
		if r.Hint, err = binding.Hint(ctx, values); err != nil {
			panic(err)
		}
		_ = up.Begin(&r)
		_ = up.Get(&r)
		p, _ := up.Peer(&r)
		fmt.Printf("%-18q -> %s, Set-Cookie: %s\n", cookies, p.Server.Addr, binding.SetCookie(p.SID, values))
		_ = up.Free(&r, peer.OK)
	}
	// Output:
	// ""                 -> 10.0.0.1:8080, Set-Cookie: srv=a; expires=Tue, 14-Nov-23 23:13:20 GMT; max-age=3600; path=/
	// "theme=dark; srv=b" -> 10.0.0.2:8080, Set-Cookie: srv=b; expires=Tue, 14-Nov-23 23:13:20 GMT; max-age=3600; path=/
	// "srv=b"            -> 10.0.0.2:8080, Set-Cookie: srv=b; expires=Tue, 14-Nov-23 23:13:20 GMT; max-age=3600; path=/
	// "srv=forged"       -> 10.0.0.2:8080, Set-Cookie: srv=b; expires=Tue, 14-Nov-23 23:13:20 GMT; max-age=3600; path=/
}

// Sessions that backends create are remembered, with the peers that created them.
func ExampleLearn() {
	binding, err := sticky.New(sticky.Learn{
		Create:   []string{"$upstream_cookie_session"},
		Lookup:   []string{"$cookie_session"},
		Capacity: 100_000,
	}, nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	created := func(text string) string { return map[string]string{"$upstream_cookie_session": "C0FFEE"}[text] }
	_ = binding.OK(ctx, "a", created) // the peer with the sid a has answered

	again := func(text string) string { return map[string]string{"$cookie_session": "C0FFEE"}[text] }
	sid, _ := binding.Hint(ctx, again)
	fmt.Println(sid)
	// Output: a
}
