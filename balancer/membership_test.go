package balancer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

func servers(addrs string) (list []balancer.Server) {
	for _, a := range strings.Fields(addrs) {
		list = append(list, balancer.Server{Addr: a})
	}
	return list
}

// addrs returns the peers of an upstream in order.
func addrs(up *balancer.Upstream) string {
	var list []string
	for _, s := range up.State() {
		list = append(list, s.Server.Addr)
	}
	return strings.Join(list, " ")
}

func newUpstream(t *testing.T, c balancer.Config) *balancer.Upstream {
	t.Helper()
	if c.Name == "" {
		c.Name = "backend"
	}
	if c.Resolver == nil {
		c.Resolver = balancer.Verbatim
	}
	up, err := balancer.New(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() { up.Close() })
	return up
}

func TestUpdate(t *testing.T) {
	up := newUpstream(t, balancer.Config{Servers: servers("a b c")})
	ctx := context.Background()
	require.NoError(t, up.Update(ctx, servers("c d")))
	require.Equal(t, "c d", addrs(up))
	require.NoError(t, up.Add(ctx, servers("e f")...))
	require.NoError(t, up.Remove("c"))
	require.NoError(t, up.Change(ctx, "e", func(s *balancer.Server) { s.Weight, s.Backup = 7, true }))
	require.Equal(t, "d f e", addrs(up), "backups come last")
	require.Equal(t, []balancer.Server{{Addr: "d"}, {Addr: "e", Weight: 7, Backup: true}, {Addr: "f"}}, up.Servers())
	require.Equal(t, 7, up.State()[2].Server.Weight)
}

// What is refused changes nothing, and says which line is wrong.
func TestUpdateIsAllOrNothing(t *testing.T) {
	up := newUpstream(t, balancer.Config{Servers: servers("a b"), Resolver: names{"two": {"10.0.0.1", "10.0.0.2"}, "a": {"10.0.1.1"}, "b": {"10.0.1.2"}}})
	ctx, before := context.Background(), up.State()
	for name, tc := range map[string]struct {
		change func() error
		server int
		field  string
	}{
		"a wrong weight":      {func() error { return up.Update(ctx, []balancer.Server{{Addr: "two"}, {Addr: "a", Weight: -1}}) }, 1, "Weight"},
		"a wrong address":     {func() error { return up.Add(ctx, balancer.Server{Addr: "[::1"}) }, 2, "Addr"},
		"nobody":              {func() error { return up.Update(ctx, nil) }, -1, "Servers"},
		"only backups":        {func() error { return up.Update(ctx, []balancer.Server{{Addr: "a", Backup: true}}) }, -1, "Servers"},
		"the last one":        {func() error { return errors.Join(up.Remove("a"), up.Remove("b"), up.Add(ctx, servers("a b")...)) }, -1, ""},
		"a change":            {func() error { return up.Change(ctx, "b", func(s *balancer.Server) { s.MaxConns = -1 }) }, 1, "MaxConns"},
		"service, no resolve": {func() error { return up.Add(ctx, balancer.Server{Addr: "two", Service: "http"}) }, 2, "Service"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.change()
			require.Error(t, err)
			if tc.field == "" {
				require.NoError(t, up.Update(ctx, servers("a b")))
				return
			}
			var e *balancer.ConfigError
			require.ErrorAs(t, err, &e)
			require.Equal(t, tc.server, e.Server)
			require.Equal(t, tc.field, e.Field)
			require.Equal(t, len(before), len(up.State()))
		})
	}
	err := up.Add(ctx, balancer.Server{Addr: "nobody:1"})
	var unknown *balancer.ResolveError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, 2, unknown.Server)
	require.ErrorIs(t, up.Remove("z"), balancer.ErrNoServer)
	require.ErrorIs(t, up.Change(ctx, "z", func(*balancer.Server) {}), balancer.ErrNoServer)
	require.NoError(t, up.Add(ctx, balancer.Server{Addr: "two:81"}))
	require.ErrorContains(t, up.Remove("10.0.0.2:81"), "a peer of the line two:81 has it")
}

// A method that refuses a set is asked before anything changes.
func TestUpdateThatTheMethodRefuses(t *testing.T) {
	up := newUpstream(t, balancer.Config{Servers: servers("a b"), Method: refuser{}})
	require.EqualError(t, up.Add(context.Background(), servers("c")...), "no more than two")
	require.Equal(t, "a b", addrs(up))
	require.Equal(t, servers("a b"), up.Servers())
}

type refuser struct{}

func (refuser) Build(s *peer.Set) (peer.Selector, error) {
	if s.Len(peer.Primary) > 2 {
		return nil, errors.New("no more than two")
	}
	return peer.PickAll{}, nil
}
func (refuser) KeyText() string { return "" }

// The same list again changes nothing, though it come before every request.
func TestUpdateWithTheSameList(t *testing.T) {
	var events []balancer.Event
	f := newFixture(t, balancer.Config{OnEvent: func(e balancer.Event) { events = append(events, e) }}, "a: 200; b: refuse; c: 200")
	require.NoError(t, f.up.Change(context.Background(), "a", func(s *balancer.Server) { s.Weight = 5 }))
	events = nil
	plain := newFixture(t, balancer.Config{Servers: []balancer.Server{{Addr: "a", Weight: 5}}}, "a: 200; b: refuse; c: 200")
	for range 50 {
		require.NoError(t, f.up.Update(context.Background(), f.up.Servers()))
		r, _ := f.request(context.Background(), "GET", "")
		require.Equal(t, plain.send(r), f.send(r))
	}
	for _, e := range events {
		require.NotEqual(t, peer.SetChanged, e.Kind)
	}
	list := f.up.Servers()
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { f.up.Update(context.Background(), list) }), 3.0)
}

// Weights come and go without a burst: the thousandfold weight is given up at any
// point of the cycle, and taken.
func TestNoBurst(t *testing.T) {
	ctx := context.Background()
	for warm := range 30 {
		up := newUpstream(t, balancer.Config{Servers: []balancer.Server{{Addr: "a", Weight: 1000}, {Addr: "b"}}})
		get := func() string {
			try := up.Start(ctx, balancer.Input{})
			try.Next()
			addr := try.Peer().Addr
			try.Done(nil)
			return addr
		}
		for range warm * 37 {
			get()
		}
		require.NoError(t, up.Change(ctx, "a", func(s *balancer.Server) { s.Weight = 1 }))
		for range 5 {
			require.Contains(t, []string{"ab", "ba"}, get()+get())
		}
		require.NoError(t, up.Change(ctx, "a", func(s *balancer.Server) { s.Weight = 1000 }))
		count := 0
		for range 1001 {
			if get() == "b" {
				count++
			}
		}
		require.InDelta(t, 1, count, 1)
	}
}

// A request in flight is freed to its own peer, and its retry picks among the present
// ones that it has not tried.
func TestUpdateWhileARequestIsOnItsWay(t *testing.T) {
	f := newFixture(t, balancer.Config{}, "a: refuse; b: refuse; c: 200; d: refuse; e: 200")
	require.NoError(t, f.up.Update(context.Background(), servers("a b c")))
	asked := 0
	f.before = func(r *http.Request) {
		asked++
		switch asked {
		case 1:
			// b, not yet tried, and a, which holds the request, go.
			require.NoError(t, f.up.Update(context.Background(), servers("c d e")))
			require.NoError(t, f.up.Remove("c"))
			state := f.up.State()
			last := state[len(state)-1]
			require.Equal(t, "a", last.Server.Addr)
			require.True(t, last.Removed)
			require.EqualValues(t, 1, last.Conns)
			require.NotZero(t, last.OldestHeld)
		case 2:
			// It comes back: a new peer, which it may be given to.
			require.NoError(t, f.up.Update(context.Background(), servers("a")))
			f.mu.Lock()
			f.script["a"] = []string{"200"}
			f.mu.Unlock()
		}
	}
	r, _ := f.request(context.Background(), "GET", "")
	require.Equal(t, "200 a", f.send(r))
	require.Equal(t, "a d a", f.asked())
	require.Equal(t, "a", addrs(f.up))
	require.Empty(t, f.fails(), "a's failure went with it")
}

// Through a request every peer is exchanged at each of its tries.
func TestRetriesOverUpdates(t *testing.T) {
	f := newFixture(t, balancer.Config{Method: hash.NewConsistent("$request_uri")}, "a: refuse; b: refuse; c: refuse; d: 200")
	require.NoError(t, f.up.Update(context.Background(), servers("a a2 a3 a4")))
	next := map[string]string{"a": "b b2 b3", "b": "c c2", "c": "d"}
	for _, s := range []string{"a2", "a3", "a4", "b2", "b3", "c2"} {
		f.script[s] = []string{"refuse"}
	}
	f.before = func(r *http.Request) {
		if list := next[r.URL.Host[:1]]; list != "" {
			require.NoError(t, f.up.Update(context.Background(), servers(list)))
		}
	}
	r, _ := f.request(context.Background(), "GET", "")
	require.Equal(t, "200 d", f.send(r))
}

// A draining peer goes when its last request ends, which is told, and may be
// removed right where that is told.
func TestDrained(t *testing.T) {
	var up *balancer.Upstream
	var idle []string
	f := newFixture(t, balancer.Config{OnEvent: func(e balancer.Event) {
		if e.Kind == peer.PeerIdle && !e.Removed {
			idle = append(idle, e.Peer.Server.Addr)
			require.NoError(t, up.Remove(e.Peer.Server.Addr))
		}
	}}, "a: 200; b: 200")
	up = f.up
	r, _ := f.request(context.Background(), "GET", "")
	resp, err := f.rt.RoundTrip(r)
	require.NoError(t, err)
	require.ErrorIs(t, up.Drained(context.Background(), "a"), balancer.ErrInUse)
	require.NoError(t, up.Change(context.Background(), "a", func(s *balancer.Server) { s.Drain = true }))

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	require.EqualError(t, up.Drained(ctx, "a"), "enough")
	done := make(chan error)
	go func() { done <- up.Drained(context.Background(), "a") }()
	require.Empty(t, idle)
	resp.Body.Close()
	require.NoError(t, <-done)
	require.Equal(t, []string{"a"}, idle)
	require.Equal(t, "b", addrs(up))
	require.NoError(t, up.Drained(context.Background(), "a"), "it is gone")
}

func TestDrainedOfARemovedPeer(t *testing.T) {
	up := newUpstream(t, balancer.Config{Servers: servers("a b")})
	try := up.Start(context.Background(), balancer.Input{})
	require.True(t, try.Next())
	require.NoError(t, up.Remove("a"))
	require.NoError(t, up.Add(context.Background(), servers("a")...))
	require.Equal(t, "b a a", addrs(up), "the new one, and the old one that is still held")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, up.Drained(ctx, "a"), context.Canceled)
	try.Done(nil)
	require.Equal(t, "b a", addrs(up))
	require.ErrorIs(t, up.Drained(context.Background(), "a"), balancer.ErrInUse)
}

// A removed peer's connections are closed when its last request ends; the others stay.
func TestConnectionsOfARemovedPeer(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		conns := &tally{open: map[net.Conn]bool{}}
		start := func() *httptest.Server {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
			s.Config.ConnState = conns.state
			if h2 {
				s.EnableHTTP2 = true
				s.StartTLS()
			} else {
				s.Start()
			}
			t.Cleanup(s.Close)
			return s
		}
		a, b := start(), start()
		up := newUpstream(t, balancer.Config{Servers: servers(addr(a) + " " + addr(b))})
		base, scheme := &http.Transport{}, "http"
		if h2 {
			base = a.Client().Transport.(*http.Transport).Clone()
			base.TLSClientConfig.ServerName = "example.com"
			scheme = "https"
		}
		rt := up.RoundTripper(base)
		get := func() *http.Response {
			r, _ := http.NewRequest("GET", scheme+"://backend/", nil)
			resp, err := rt.RoundTrip(r)
			require.NoError(t, err)
			return resp
		}
		for range 4 {
			resp := get()
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		held := get() // a
		conns.want(t, 2)
		require.NoError(t, up.Remove(addr(a)))
		conns.want(t, 2)
		io.Copy(io.Discard, held.Body)
		held.Body.Close()
		conns.want(t, 1)
		require.NoError(t, up.Close())
		conns.want(t, 0)
	}
}

// tally counts a server's connections.
type tally struct {
	mu   sync.Mutex
	open map[net.Conn]bool
}

func (c *tally) state(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == http.StateClosed || s == http.StateHijacked {
		delete(c.open, conn)
	} else {
		c.open[conn] = true
	}
}

func (c *tally) want(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.open) == n
	})
}

// Sticky finds peers of the present set only.
func TestStickyOverAnUpdate(t *testing.T) {
	f := newFixture(t, balancer.Config{Sticky: sticky.Cookie{Name: "srv"}}, "a: 200; b: 200; c: 200")
	r, _ := f.request(context.Background(), "GET", "")
	resp, err := f.rt.RoundTrip(r)
	require.NoError(t, err)
	resp.Body.Close()
	cookie := resp.Cookies()[0]
	again := func() string {
		r, _ := f.request(context.Background(), "GET", "")
		r.AddCookie(cookie)
		return f.send(r)
	}
	require.Equal(t, "200 a", again())
	require.NoError(t, f.up.Update(context.Background(), servers("c b a")))
	require.Equal(t, "200 a", again())
	require.NoError(t, f.up.Remove("a"))
	require.NotEqual(t, "200 a", again())
	require.NoError(t, f.up.Add(context.Background(), servers("a")...))
	require.Equal(t, "200 a", again())
}

func TestCloseEndsChanges(t *testing.T) {
	up := newUpstream(t, balancer.Config{Servers: servers("a b")})
	try := up.Start(context.Background(), balancer.Input{})
	require.True(t, try.Next())
	require.NoError(t, up.Close())
	require.NoError(t, up.Close())
	require.ErrorIs(t, up.Update(context.Background(), servers("c")), balancer.ErrClosed)
	require.ErrorIs(t, up.Remove("a"), balancer.ErrClosed)
	_, err := up.DialContext(context.Background(), "tcp", "backend:1")
	require.ErrorIs(t, err, balancer.ErrClosed)
	require.NoError(t, try.Done(nil))
	require.NoError(t, up.Drained(context.Background(), "nobody"))
	require.Equal(t, "a b", addrs(up))
}

// A connection that is in use at Close is closed when its request ends.
func TestCloseWhileARequestIsOnItsWay(t *testing.T) {
	conns := &tally{open: map[net.Conn]bool{}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	s.Config.ConnState = conns.state
	s.Start()
	t.Cleanup(s.Close)
	up := newUpstream(t, balancer.Config{Servers: servers(addr(s))})
	r, _ := http.NewRequest("GET", "http://backend/", nil)
	resp, err := up.RoundTripper(nil).RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, up.Close())
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	conns.want(t, 0)
}
