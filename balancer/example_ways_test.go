package balancer_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/sticky"
)

// named starts a server that answers with its name.
func named(name string) (addr string, close func()) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) }))
	return s.Listener.Addr().String(), s.Close
}

// start is New for examples, which have no errors.
func start(c balancer.Config) *balancer.Upstream {
	up, err := balancer.New(context.Background(), c)
	if err != nil {
		panic(err)
	}
	return up
}

// body sends a request and returns the answer's body.
func body(client *http.Client, r *http.Request) string {
	resp, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// DialContext stands where a net.Dialer's would: for a database driver, say.
func ExampleUpstream_DialContext() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "PONG\n")
			c.Close()
		}
	}()
	up := start(balancer.Config{Name: "redis", Servers: []balancer.Server{
		{Addr: "127.0.0.1:1"}, // nothing listens here: the next one is dialled
		{Addr: listener.Addr().String()},
	}})
	defer up.Close()

	conn, err := up.DialContext(context.Background(), "tcp", "redis:6379")
	if err != nil {
		panic(err)
	}
	answer, _ := io.ReadAll(conn)
	conn.Close() // frees the peer
	fmt.Print(string(answer))
	// Output: PONG
}

// A server leaves without losing a request: it gets no new ones, those that it has are
// waited for, and then it can be stopped.
func ExampleUpstream_WaitDrained() {
	up := start(balancer.Config{Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}}})
	defer up.Close()
	ctx := context.Background()

	try := up.Start(ctx, balancer.Input{})
	try.Next() // a request on its way to 10.0.0.1
	if err := up.UpdateServer(ctx, "10.0.0.1:80", func(s *balancer.Server) { s.Drain = true }); err != nil {
		panic(err)
	}
	go func() {
		try.Done(nil)
		fmt.Println("the last request has ended")
		try.Close()
	}()
	if err := up.WaitDrained(ctx, "10.0.0.1:80"); err != nil {
		panic(err)
	}
	fmt.Println("drained:", up.Remove("10.0.0.1:80"))
	// Unordered output:
	// the last request has ended
	// drained: <nil>
}

// A process that is to end lets its requests come to their end first.
func ExampleUpstream_Shutdown() {
	up := start(balancer.Config{Servers: []balancer.Server{{Addr: "10.0.0.1:80"}}})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(up.Shutdown(ctx)) // after http.Server.Shutdown, for instance
	fmt.Println(up.Start(ctx, balancer.Input{}).Next())
	// Output:
	// <nil>
	// false
}

// Update replaces all server lines at once. What stays keeps its state.
func ExampleUpstream_Update() {
	up := start(balancer.Config{Servers: []balancer.Server{{Addr: "10.0.0.1:80"}}})
	defer up.Close()
	err := up.Update(context.Background(), []balancer.Server{{Addr: "10.0.0.1:80", Weight: 2}, {Addr: "10.0.0.2:80"}})
	fmt.Println(err, len(up.Snapshot().Peers))
	err = up.Update(context.Background(), []balancer.Server{{Addr: "10.0.0.1:80", Weight: -1}})
	fmt.Println(err)
	// Output:
	// <nil> 2
	// trunk: servers[0].Weight: must be at least 1; 0 means 1 (got -1)
}

// An AttemptLog holds the peers that a request was sent to, for the caller's log line.
func ExampleWithLog() {
	up := start(balancer.Config{Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}}})
	defer up.Close()
	log := new(balancer.AttemptLog)
	try := up.Start(balancer.WithLog(context.Background(), log), balancer.Input{})
	defer try.Close()
	try.Next()
	try.Done(io.ErrUnexpectedEOF)
	try.Next()
	try.Done(nil)
	fmt.Println(log.Addr(), log.Status())
	fmt.Println(log.Attempts()[0])
	// Output:
	// 10.0.0.1:80, 10.0.0.2:80 502, 200
	// 10.0.0.1:80: unexpected EOF
}

// Events are ready for log/slog.
func ExampleConfig_onEvent() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	up := start(balancer.Config{
		Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}},
		OnEvent: func(e balancer.Event) {
			if e.Kind == balancer.PeerEjected {
				logger.Info("upstream", "", e)
			}
		},
	})
	defer up.Close()
	try := up.Start(context.Background(), balancer.Input{})
	defer try.Close()
	try.Next()
	try.Done(io.ErrUnexpectedEOF)
	// Output: msg=upstream event=ejected peer=10.0.0.1:80 conns=0 fails=1 max_fails=1 ew_before=1 ew_after=0
}

// One transport for two upstreams.
func ExampleJoin() {
	usersAddr, stopUsers := named("users")
	defer stopUsers()
	ordersAddr, stopOrders := named("orders")
	defer stopOrders()
	users := start(balancer.Config{Name: "users", Servers: []balancer.Server{{Addr: usersAddr}}})
	defer users.Close()
	orders := start(balancer.Config{Name: "orders", Servers: []balancer.Server{{Addr: ordersAddr}}})
	defer orders.Close()

	rt, err := balancer.Join(nil, users, orders)
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: rt}
	for _, url := range []string{"http://orders/1", "http://users/1"} {
		r, _ := http.NewRequest("GET", url, nil)
		fmt.Println(body(client, r))
	}
	// Output:
	// orders
	// users
}

// WithInput brings what the choice is made of where the request itself does not: here the
// client's address for ip_hash, in a program that is no HTTP server.
func ExampleWithInput() {
	up := start(balancer.Config{Method: iphash.New(),
		Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}, {Addr: "10.0.0.3:80"}}})
	defer up.Close()
	for range 2 {
		ctx := balancer.WithInput(context.Background(), balancer.Input{Client: netip.MustParseAddr("192.0.2.7")})
		try := up.Start(ctx, balancer.Input{})
		try.Next()
		fmt.Println(try.Peer().Addr)
		try.Close()
	}
	// Output:
	// 10.0.0.1:80
	// 10.0.0.1:80
}

// A cookie binds a client to the server that it has got.
func ExampleConfig_sticky() {
	a, stopA := named("a")
	defer stopA()
	b, stopB := named("b")
	defer stopB()
	up := start(balancer.Config{Name: "app",
		Sticky:  sticky.Cookie{Name: "srv", Path: "/", HTTPOnly: true},
		Servers: []balancer.Server{{Addr: a, Route: "first"}, {Addr: b, Route: "second"}}})
	defer up.Close()
	client := &http.Client{Transport: up.RoundTripper(nil)}

	r, _ := http.NewRequest("GET", "http://app/", nil)
	resp, err := client.Do(r)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.Header.Get("Set-Cookie"))
	for range 3 {
		r, _ := http.NewRequest("GET", "http://app/", nil)
		r.AddCookie(resp.Cookies()[0])
		fmt.Print(body(client, r), " ")
	}
	// Output:
	// srv=first; httponly; path=/
	// a a a
}

// A Budget keeps retries from doubling an outage: here one for every five requests, and
// one a second whatever the traffic.
func ExampleBudget() {
	now := time.Duration(0)
	up := start(balancer.Config{
		Servers: []balancer.Server{{Addr: "10.0.0.1:80", MaxFails: balancer.NoMaxFails}, {Addr: "10.0.0.2:80", MaxFails: balancer.NoMaxFails}},
		Retry:   balancer.Retry{Budget: balancer.Budget{Share: 0.2, PerSecond: 1}},
		Clock:   func() time.Duration { return now },
	})
	defer up.Close()
	attempts := 0
	for range 100 {
		try := up.Start(context.Background(), balancer.Input{})
		for try.Next() {
			attempts++
			try.Done(io.ErrUnexpectedEOF)
		}
		try.Close()
	}
	fmt.Println(attempts, "attempts for 100 requests")
	// Output: 130 attempts for 100 requests
}

// Redact takes addresses and keys out of what leaves the program by itself. A keyed hash
// keeps apart what is different.
func ExampleConfig_redact() {
	secret := []byte("of this program alone")
	up := start(balancer.Config{
		Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}},
		Redact: func(kind balancer.TextKind, text string) string {
			mac := hmac.New(sha256.New, secret)
			io.WriteString(mac, text)
			return string(kind) + "-" + hex.EncodeToString(mac.Sum(nil)[:4])
		},
		OnEvent: func(e balancer.Event) {
			if e.Kind == balancer.PeerEjected {
				fmt.Println(e.Kind, e.Peer.Server.Addr)
			}
		},
	})
	defer up.Close()
	try := up.Start(context.Background(), balancer.Input{})
	defer try.Close()
	try.Next()
	try.Done(io.ErrUnexpectedEOF)
	// Output: ejected addr-1cb441cd
}

// A Policy changes what a failure costs a peer, and how it comes back.
func ExamplePolicy() {
	now := time.Duration(0)
	up := start(balancer.Config{
		Servers: []balancer.Server{{Addr: "10.0.0.1:80", Weight: 5}, {Addr: "10.0.0.2:80", Weight: 5}},
		Policy: balancer.Policy{
			KeepLast:  true,             // never leave the upstream without a peer
			SlowStart: 30 * time.Second, // from a little to all within 30 s
		},
		Clock: func() time.Duration { return now },
	})
	defer up.Close()
	for range 4 {
		try := up.Start(context.Background(), balancer.Input{})
		try.Next()
		try.Done(io.ErrUnexpectedEOF)
		try.Close()
	}
	out := 0
	for _, p := range up.Snapshot().Peers {
		if p.Out {
			out++
		}
	}
	fmt.Println(out, "of 2 peers is out")
	// Output: 1 of 2 peers is out
}
