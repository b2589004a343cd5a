package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	for _, s := range up.Snapshot().Peers {
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
		c.Resolver = balancer.NoLookup
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
	require.NoError(t, up.UpdateServer(ctx, "e", func(s *balancer.Server) { s.Weight, s.Backup = 7, true }))
	require.Equal(t, "d f e", addrs(up), "backups come last")
	require.Equal(t, []balancer.Server{{Addr: "d"}, {Addr: "e", Weight: 7, Backup: true}, {Addr: "f"}}, up.Servers())
	require.Equal(t, 7, up.Snapshot().Peers[2].Server.Weight)
}

// What is refused changes nothing, and says which line is wrong.
func TestUpdateIsAllOrNothing(t *testing.T) {
	up := newUpstream(t, balancer.Config{Servers: servers("a b"), Resolver: names{"two": {"10.0.0.1", "10.0.0.2"}, "a": {"10.0.1.1"}, "b": {"10.0.1.2"}}})
	ctx, before := context.Background(), up.Snapshot().Peers
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
		"a change":            {func() error { return up.UpdateServer(ctx, "b", func(s *balancer.Server) { s.MaxConns = -1 }) }, 1, "MaxConns"},
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
			require.Equal(t, len(before), len(up.Snapshot().Peers))
		})
	}
	err := up.Add(ctx, balancer.Server{Addr: "nobody:1"})
	var unknown *balancer.ResolveError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, 2, unknown.Server)
	require.ErrorIs(t, up.Remove("z"), balancer.ErrNoServer)
	require.ErrorIs(t, up.UpdateServer(ctx, "z", func(*balancer.Server) {}), balancer.ErrNoServer)
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
		return peer.Selector{}, errors.New("no more than two")
	}
	return peer.Selector{Pick: peer.PickAll}, nil
}
func (refuser) Describe() peer.Description { return peer.Description{} }

// A clock that panics in the midst of a change has changed nothing, and the next change is
// made of its own peers.
func TestUpdateWithAClockThatPanics(t *testing.T) {
	broken := false
	up := newUpstream(t, balancer.Config{Servers: servers("a"), Clock: func() time.Duration {
		if broken {
			panic("clock")
		}
		return 1_700_000_000 * time.Second
	}})
	broken = true
	require.PanicsWithValue(t, "clock", func() { _ = up.Update(context.Background(), servers("b")) })
	broken = false
	require.Equal(t, "a", addrs(up))
	require.NoError(t, up.Update(context.Background(), servers("c")))
	asked := ""
	rt := up.RoundTripper(roundTripper(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.Host
		return &http.Response{StatusCode: 204, Request: r}, nil
	}))
	r, _ := http.NewRequest("GET", "http://backend/", nil)
	_, err := rt.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, "c", asked)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A hook that panics where a change is told finds it made.
func TestUpdateWithHooksThatPanic(t *testing.T) {
	for name, c := range map[string]balancer.Config{
		"OnEvent": {OnEvent: func(balancer.Event) { panic("angry") }},
		"Redact":  {OnEvent: func(balancer.Event) {}, Redact: func(balancer.TextKind, string) string { panic("angry") }},
	} {
		t.Run(name, func(t *testing.T) {
			c.Servers = servers("a b c")
			up := newUpstream(t, c)
			require.NoError(t, up.Update(context.Background(), servers("c")))
			require.NotZero(t, up.Snapshot().HookPanics)
			require.Equal(t, "c", addrs(up))
			require.Equal(t, servers("c"), up.Servers())
		})
	}
}

// The same list again changes nothing, though it come before every request.
func TestUpdateWithTheSameList(t *testing.T) {
	var events []balancer.Event
	f := newFixture(t, balancer.Config{OnEvent: func(e balancer.Event) { events = append(events, e) }}, "a: 200; b: refuse; c: 200")
	require.NoError(t, f.up.UpdateServer(context.Background(), "a", func(s *balancer.Server) { s.Weight = 5 }))
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
		require.NoError(t, up.UpdateServer(ctx, "a", func(s *balancer.Server) { s.Weight = 1 }))
		for range 5 {
			require.Contains(t, []string{"ab", "ba"}, get()+get())
		}
		require.NoError(t, up.UpdateServer(ctx, "a", func(s *balancer.Server) { s.Weight = 1000 }))
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
			state := f.up.Snapshot().Peers
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
	require.ErrorIs(t, up.WaitDrained(context.Background(), "a"), balancer.ErrInUse)
	require.NoError(t, up.UpdateServer(context.Background(), "a", func(s *balancer.Server) { s.Drain = true }))

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	require.EqualError(t, up.WaitDrained(ctx, "a"), "enough")
	done := make(chan error)
	go func() { done <- up.WaitDrained(context.Background(), "a") }()
	require.Empty(t, idle)
	resp.Body.Close()
	require.NoError(t, <-done)
	require.Equal(t, []string{"a"}, idle)
	require.Equal(t, "b", addrs(up))
	require.NoError(t, up.WaitDrained(context.Background(), "a"), "it is gone")
}

// One that has nothing to do is idle by the change itself, and may be removed right
// there too.
func TestDrainedAtOnce(t *testing.T) {
	var up *balancer.Upstream
	up = newUpstream(t, balancer.Config{Servers: servers("a b"), OnEvent: func(e balancer.Event) {
		if e.Kind == peer.PeerIdle && !e.Removed {
			require.NoError(t, up.Remove(e.Peer.Server.Addr))
		}
	}})
	require.NoError(t, up.UpdateServer(context.Background(), "a", func(s *balancer.Server) { s.Drain = true }))
	require.Equal(t, "b", addrs(up))
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
	require.ErrorIs(t, up.WaitDrained(ctx, "a"), context.Canceled)
	try.Done(nil)
	require.Equal(t, "b a", addrs(up))
	require.ErrorIs(t, up.WaitDrained(context.Background(), "a"), balancer.ErrInUse)
}

// A removed peer's connections are closed when its last request ends; the others stay.
func TestConnectionsOfARemovedPeer(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		p := startPeers(t, h2, 2, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
		up := newUpstream(t, balancer.Config{Servers: servers(p.addrs)})
		rt := up.RoundTripper(p.base)
		for range 4 {
			resp := p.get(t, rt)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		held := p.get(t, rt) // the first one
		p.conns.want(t, 2)
		first, _, _ := strings.Cut(p.addrs, " ")
		require.NoError(t, up.Remove(first))
		p.conns.want(t, 2)
		io.Copy(io.Discard, held.Body)
		held.Body.Close()
		p.conns.want(t, 1)
		require.NoError(t, up.Close())
		p.conns.want(t, 0)
	}
}

// Without keepalive no connection is left when the requests have ended, whatever it speaks, and
// no request says so to its peer.
func TestNoKeepalive(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			p := startPeers(t, h2, 2, func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "HTTP/%d%s", r.ProtoMajor, r.Header.Get("Connection"))
			})
			up := newUpstream(t, balancer.Config{Servers: servers(p.addrs), Keepalive: balancer.NoKeepalive})
			rt := up.RoundTripper(p.base)
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() {
					for range 10 {
						r, _ := http.NewRequest("GET", p.url, nil)
						resp, err := rt.RoundTrip(r)
						if !assert.NoError(t, err) {
							return
						}
						body, err := io.ReadAll(resp.Body)
						assert.NoError(t, err)
						assert.Equal(t, name, string(body))
						assert.NoError(t, resp.Body.Close())
					}
				})
			}
			clients.Wait()
			p.conns.want(t, 0)
			for _, s := range up.Snapshot().Peers {
				require.Zero(t, s.Fails)
			}
		})
	}
}

// peers are real servers whose connections are counted.
type peers struct {
	addrs string
	base  *http.Transport
	url   string
	conns *tally
}

func startPeers(t *testing.T, h2 bool, n int, h http.HandlerFunc) *peers {
	p := &peers{conns: &tally{open: map[net.Conn]bool{}}, base: &http.Transport{}, url: "http://backend/"}
	for range n {
		s := httptest.NewUnstartedServer(h)
		s.Config.ConnState, s.Config.ErrorLog = p.conns.state, quiet
		if h2 {
			s.EnableHTTP2 = true
			s.StartTLS()
			p.base, p.url = s.Client().Transport.(*http.Transport).Clone(), "https://backend/"
			p.base.TLSClientConfig.ServerName = "example.com"
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		p.addrs = strings.TrimSpace(p.addrs + " " + addr(s))
	}
	return p
}

func (p *peers) get(t *testing.T, rt http.RoundTripper) *http.Response {
	t.Helper()
	r, _ := http.NewRequest("GET", p.url, nil)
	resp, err := rt.RoundTrip(r)
	require.NoError(t, err)
	return resp
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

// of counts the connections that a server has.
func (c *tally) of(addr string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if conn.LocalAddr().String() == addr {
			n++
		}
	}
	return n
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
	try.Done(nil)
	require.NoError(t, up.WaitDrained(context.Background(), "nobody"))
	require.Equal(t, "a b", addrs(up))
}

// Connections that are in use at Close are closed when the last request of their peer ends,
// which nobody is the poorer for: bodies and trailers come whole.
func TestCloseWhileRequestsAreOnTheirWay(t *testing.T) {
	rest := strings.Repeat("rest ", 20_000)
	for name, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			p := startPeers(t, h2, 1, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				io.WriteString(w, "first ")
				w.(http.Flusher).Flush()
				<-goOn
				io.WriteString(w, rest)
				w.Header().Set("X-Sum", "12")
			})
			// Who is first, the reader of a body's end or the transport's own
			// goroutines, is open: it takes some rounds to see both.
			for range 10 {
				up := newUpstream(t, balancer.Config{Servers: servers(p.addrs)})
				rt := up.RoundTripper(p.base)
				var open []*http.Response
				for range 5 {
					open = append(open, p.get(t, rt))
				}
				require.NoError(t, up.Close())
				var readers sync.WaitGroup
				for _, resp := range open {
					readers.Go(func() {
						body, err := io.ReadAll(resp.Body)
						assert.NoError(t, err)
						assert.Equal(t, "first "+rest, string(body))
						assert.Equal(t, "12", resp.Trailer.Get("X-Sum"))
					})
				}
				for range open {
					goOn <- struct{}{}
				}
				readers.Wait()
				p.conns.want(t, 0)
			}
		})
	}
}

// Requests that come while Close is on its way are let in or refused; either way no
// connection is left, and no peer blamed.
func TestCloseUnderLoad(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			p := startPeers(t, h2, 2, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
			for range 10 {
				up := newUpstream(t, balancer.Config{Servers: servers(p.addrs)})
				rt := up.RoundTripper(p.base)
				var clients sync.WaitGroup
				started := make(chan struct{}, 100)
				for range 8 {
					clients.Go(func() {
						for {
							r, _ := http.NewRequest("GET", p.url, nil)
							resp, err := rt.RoundTrip(r)
							if err != nil {
								if !errors.Is(err, balancer.ErrClosed) {
									t.Error(err)
								}
								return
							}
							if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
								t.Error(string(body), err)
							}
							select {
							case started <- struct{}{}:
							default:
							}
						}
					})
				}
				for range cap(started) {
					<-started
				}
				require.NoError(t, up.Close())
				clients.Wait()
				p.conns.want(t, 0)
				for _, s := range up.Snapshot().Peers {
					require.Zero(t, s.Conns)
					require.Zero(t, s.Fails)
				}
			}
		})
	}
}

// An answer that was passed over, but is given after all, comes whole, though its peer is
// gone by then.
func TestLastAnswerOfAPeerThatIsGone(t *testing.T) {
	long := strings.Repeat("sorry ", 20_000)
	for name, leave := range map[string]func(*balancer.Upstream, string) error{
		"removed": (*balancer.Upstream).Remove,
		"closed":  func(up *balancer.Upstream, _ string) error { return up.Close() },
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " h2=", h2), func(t *testing.T) {
				var up *balancer.Upstream
				var first string
				asked := 0
				p := startPeers(t, h2, 2, func(w http.ResponseWriter, r *http.Request) {
					if asked++; asked == 2 {
						if err := leave(up, first); err != nil {
							t.Error(err)
						}
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(503)
					io.WriteString(w, long)
				})
				first, _, _ = strings.Cut(p.addrs, " ")
				up = newUpstream(t, balancer.Config{Servers: servers(p.addrs),
					Retry: balancer.Retry{On: balancer.KindError | balancer.KindHTTP503, LastAnswer: true}})
				resp := p.get(t, up.RoundTripper(p.base))
				require.Equal(t, 2, asked)
				require.Equal(t, 503, resp.StatusCode)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, long, string(body))
				require.NoError(t, resp.Body.Close())
				_ = resp.Body.Close()
				if name == "closed" {
					p.conns.want(t, 0)
				} else {
					eventually(t, func() bool { return p.conns.of(first) == 0 })
				}
			})
		}
	}
}
