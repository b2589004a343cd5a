package balancer_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/peer"
)

// zone is a resolver whose answers can be changed. A host's answer is its
// addresses; a service's is "host:port priority weight", separated by commas.
type zone struct {
	mu    sync.Mutex
	hosts map[string]string
	srv   map[string]string
	asked map[string]int
	hang  bool
}

func (z *zone) set(name, answer string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if strings.HasPrefix(name, "_") {
		z.srv[name] = answer
	} else {
		z.hosts[name] = answer
	}
}

func newZone(records ...string) *zone {
	z := &zone{hosts: map[string]string{}, srv: map[string]string{}, asked: map[string]int{}}
	for i := 0; i < len(records); i += 2 {
		z.set(records[i], records[i+1])
	}
	return z
}

func (z *zone) ask(ctx context.Context, name string, from map[string]string) (string, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked[name]++
	if z.hang {
		z.mu.Unlock()
		<-ctx.Done()
		z.mu.Lock()
		return "", ctx.Err()
	}
	if from[name] == "" {
		return "", &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return from[name], nil
}

func (z *zone) LookupNetIP(ctx context.Context, network, host string) (list []netip.Addr, err error) {
	answer, err := z.ask(ctx, host, z.hosts)
	if network == "ip6" { // a host is counted once, whatever families it is asked for
		z.mu.Lock()
		z.asked[host]--
		z.mu.Unlock()
	}
	for _, s := range strings.Fields(answer) {
		list = append(list, netip.MustParseAddr(s))
	}
	return list, err
}

func (z *zone) LookupSRV(ctx context.Context, service, proto, name string) (_ string, list []*net.SRV, err error) {
	if service != "" {
		name = "_" + service + "._" + proto + "." + name
	}
	answer, err := z.ask(ctx, name, z.srv)
	for record := range strings.SplitSeq(answer, ",") {
		if f := strings.Fields(record); len(f) == 3 {
			host, port, _ := strings.Cut(f[0], ":")
			list = append(list, &net.SRV{Target: host + ".", Port: number(port), Priority: number(f[1]), Weight: number(f[2])})
		} else {
			list = append(list, nil)
		}
	}
	return name, list, err
}

func number(s string) (n uint16) {
	for _, c := range s {
		n = n*10 + uint16(c-'0')
	}
	return n
}

// told are the events of names and of the set, in words.
type told struct {
	mu   sync.Mutex
	list []string
}

func (l *told) add(e balancer.Event) {
	text := ""
	switch e.Kind {
	case peer.SetChanged:
		text = "set"
	case peer.NamesChanged:
		text = e.Lookup.Host
		for _, s := range e.Lookup.Added {
			text += " +" + s
		}
		for _, s := range e.Lookup.Removed {
			text += " -" + s
		}
	case peer.LookupFailed:
		text = e.Lookup.Host + " error"
		if e.Lookup.Err == nil || e.Lookup.Added != nil || e.Lookup.Removed != nil {
			text += "?"
		}
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, text)
}

func (l *told) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.Join(l.list, "; ")
	l.list = nil
	return s
}

// bubble runs a test with an upstream over a zone, in a synctest bubble. next lets one
// interval pass.
func bubble(t *testing.T, z *zone, servers []balancer.Server, f func(up *balancer.Upstream, l *told, next func())) {
	synctest.Test(t, func(t *testing.T) {
		l := &told{}
		up := newUpstream(t, balancer.Config{Servers: servers, Resolver: z, OnEvent: l.add, ResolveInterval: time.Minute})
		f(up, l, func() {
			time.Sleep(66 * time.Second)
			synctest.Wait()
		})
		// A goroutine that stays would end the bubble in a panic.
		require.NoError(t, up.Close())
	})
}

func TestNamesAreLookedUpAgain(t *testing.T) {
	z := newZone("app", "10.0.0.2 10.0.0.1 ::1", "once", "10.1.0.2 10.1.0.1")
	bubble(t, z, []balancer.Server{{Addr: "app:81", Resolve: true, Weight: 3}, {Addr: "once"}}, func(up *balancer.Upstream, l *told, next func()) {
		const first = "10.0.0.1:81 10.0.0.2:81 [::1]:81 10.1.0.2:80 10.1.0.1:80"
		require.Equal(t, first, addrs(up))
		try := up.Start(context.Background(), balancer.Input{})
		require.True(t, try.Next())
		try.Done(errors.New("broken"))
		before := up.Snapshot().Peers

		// Shuffled, with what was there twice: no change at all.
		z.set("app", "::1 10.0.0.1 ::ffff:10.0.0.2 10.0.0.1")
		next()
		require.Equal(t, before, up.Snapshot().Peers)
		require.Empty(t, l.take())

		// What stays keeps its state; what is new is new.
		z.set("app", "10.0.0.3 10.0.0.1")
		z.set("once", "10.1.0.9")
		next()
		require.Equal(t, "10.0.0.1:81 10.0.0.3:81 10.1.0.2:80 10.1.0.1:80", addrs(up))
		require.Equal(t, "set; app +10.0.0.3 -10.0.0.2 -::1", l.take(), "in order")
		require.EqualValues(t, 1, up.Snapshot().Peers[0].Fails)
		require.Equal(t, 3, up.Snapshot().Peers[1].Server.Weight)
		require.Equal(t, "app:81", up.Snapshot().Peers[1].Server.Name)

		// A failure keeps the last good set.
		z.set("app", "")
		next()
		next()
		require.Equal(t, "app error; app error", l.take())
		require.Equal(t, 4, len(up.Snapshot().Peers))
		z.set("app", "10.0.0.1")
		next()
		require.Equal(t, "set; app -10.0.0.3", l.take())

		require.Equal(t, 1, z.asked["once"])
	})
}

// The interval is Config.ResolveInterval, a tenth more or less, and a look-up that
// hangs is given up.
func TestResolveInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z, start := newZone("app", "10.0.0.1"), time.Now()
		var at []time.Duration
		up := newUpstream(t, balancer.Config{Servers: []balancer.Server{{Addr: "app", Resolve: true}}, Resolver: z, ResolveInterval: 10 * time.Second,
			ResolveTimeout: time.Second, OnEvent: func(balancer.Event) { at = append(at, time.Since(start)) }})
		z.mu.Lock()
		z.hang = true
		z.mu.Unlock()
		time.Sleep(1000 * time.Second)
		up.Close()
		synctest.Wait()
		seen := map[time.Duration]bool{}
		for i := 1; i < len(at); i++ {
			wait := at[i] - at[i-1] - time.Second
			require.GreaterOrEqual(t, wait, 9*time.Second)
			require.LessOrEqual(t, wait, 11*time.Second)
			seen[wait] = true
		}
		require.Greater(t, len(seen), 5, "the interval does not vary")
		require.InDelta(t, 1000/11, len(at), 10)
	})
}

// A goroutine exists only while there is something to look up.
func TestNoGoroutineWithoutNames(t *testing.T) {
	z := newZone("app", "10.0.0.1", "app2", "10.0.0.2")
	synctest.Test(t, func(t *testing.T) {
		// Never closed: a goroutine would be found at the end of the bubble.
		up, err := balancer.New(context.Background(), balancer.Config{Servers: []balancer.Server{{Addr: "app"}, {Addr: "10.1", Resolve: true}}, Resolver: z})
		require.NoError(t, err)
		ctx := context.Background()
		require.NoError(t, up.Add(ctx, balancer.Server{Addr: "app2", Resolve: true}))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Greater(t, z.asked["app2"], 1)
		require.NoError(t, up.Remove("app2:80"))
		n := z.asked["app2"]
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, n, z.asked["app2"])
		require.NoError(t, up.Add(ctx, balancer.Server{Addr: "app2", Resolve: true}))
		require.NoError(t, up.UpdateServer(ctx, "app2", func(s *balancer.Server) { s.Resolve = false }))
	})
}

// The last given list is the truth for names too: those that stay are not looked up
// by an update, and those that go are not looked up at all.
func TestUpdateOfNames(t *testing.T) {
	z := newZone("a", "10.0.0.1", "b", "10.0.1.1 10.0.1.2", "c", "10.0.2.1")
	a, b, c := balancer.Server{Addr: "a", Resolve: true}, balancer.Server{Addr: "b", Resolve: true}, balancer.Server{Addr: "c"}
	bubble(t, z, []balancer.Server{a, c}, func(up *balancer.Upstream, l *told, next func()) {
		ctx := context.Background()
		z.set("a", "")
		z.set("c", "")
		require.NoError(t, up.Update(ctx, []balancer.Server{b, a, c}))
		require.Equal(t, "10.0.1.1:80 10.0.1.2:80 10.0.0.1:80 10.0.2.1:80", addrs(up), "a and c are known")
		require.NoError(t, up.UpdateServer(ctx, "b:80", func(s *balancer.Server) { s.Backup = true }))
		require.Equal(t, "10.0.0.1:80 10.0.2.1:80 10.0.1.1:80 10.0.1.2:80", addrs(up))
		l.take()
		next()
		require.Equal(t, "a error", l.take())
		z.set("b", "10.0.1.2")
		next()
		require.Equal(t, "10.0.0.1:80 10.0.2.1:80 10.0.1.2:80", addrs(up))
		l.take()
		require.NoError(t, up.Remove("a"))
		l.take()
		next()
		require.Empty(t, l.take())
		require.Equal(t, 2, z.asked["a"]-1)

		// Forgotten, it must be looked up as if it were new.
		var unknown *balancer.ResolveError
		require.ErrorAs(t, up.Add(ctx, a), &unknown)
		require.Equal(t, 2, unknown.Server)
		require.Equal(t, "10.0.2.1:80 10.0.1.2:80", addrs(up))
	})
}

// While names are looked up the set may change, and Close does not wait.
func TestUpdateWhileNamesAreLookedUp(t *testing.T) {
	z := newZone("a", "10.0.0.1", "b", "10.0.0.2")
	bubble(t, z, []balancer.Server{{Addr: "a", Resolve: true}}, func(up *balancer.Upstream, l *told, next func()) {
		z.mu.Lock()
		z.hang = true
		z.mu.Unlock()
		next()
		ctx, cancel := context.WithCancel(context.Background())
		late := make(chan error)
		go func() { late <- up.Add(ctx, balancer.Server{Addr: "b"}) }()
		synctest.Wait()
		require.NoError(t, up.Add(context.Background(), servers("10.0.0.9:1")...))
		require.Equal(t, "10.0.0.1:80 10.0.0.9:1", addrs(up))
		cancel()
		require.ErrorIs(t, <-late, context.Canceled)

		// One that comes late is an addition to what is there by then.
		z.mu.Lock()
		z.hang = false
		z.mu.Unlock()
		require.NoError(t, up.Add(context.Background(), balancer.Server{Addr: "b"}))
		require.Equal(t, "10.0.0.1:80 10.0.0.9:1 10.0.0.2:80", addrs(up))
	})
}

// peersOf describes peers: "10.0.0.1:80 w=2 b", b for a backup.
func peersOf(up *balancer.Upstream) (list []string) {
	for _, s := range up.Snapshot().Peers {
		text := s.Server.Addr + " w=" + string('0'+rune(s.Server.Weight))
		if s.Server.Backup {
			text += " b"
		}
		list = append(list, text)
	}
	return list
}

// service=: docs/parity.md, section 11.
func TestService(t *testing.T) {
	const records = "n1:8001 1 5, n2:8002 1 0, n3:8003 2 4, n1:8004 3 1, broken"
	for _, tc := range []struct {
		name   string
		server balancer.Server
		srv    string
		want   []string
	}{
		{"the best priority is primary", balancer.Server{Addr: "app", Service: "http"}, "_http._tcp.app",
			[]string{"10.0.0.1:8001 w=5", "10.0.0.2:8002 w=1", "[::2]:8002 w=1", "10.0.0.3:8003 w=4 b", "10.0.0.1:8004 w=1 b"}},
		{"a weight of its own", balancer.Server{Addr: "app:80", Service: "http", Weight: 7}, "_http._tcp.app",
			[]string{"10.0.0.1:8001 w=7", "10.0.0.2:8002 w=7", "[::2]:8002 w=7", "10.0.0.3:8003 w=7 b", "10.0.0.1:8004 w=7 b"}},
		{"weight 1 is none of its own", balancer.Server{Addr: "app", Service: "http", Weight: 1}, "_http._tcp.app",
			[]string{"10.0.0.1:8001 w=5", "10.0.0.2:8002 w=1", "[::2]:8002 w=1", "10.0.0.3:8003 w=4 b", "10.0.0.1:8004 w=1 b"}},
		{"a backup line", balancer.Server{Addr: "app", Service: "http", Backup: true}, "_http._tcp.app",
			[]string{"10.9.9.9:80 w=1", "10.0.0.1:8001 w=5 b", "10.0.0.2:8002 w=1 b", "[::2]:8002 w=1 b"}},
		{"a service with dots", balancer.Server{Addr: "app", Service: "_x._udp.y"}, "_x._udp.y.app",
			[]string{"10.0.0.1:8001 w=5", "10.0.0.2:8002 w=1", "[::2]:8002 w=1", "10.0.0.3:8003 w=4 b", "10.0.0.1:8004 w=1 b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			z := newZone("n1", "10.0.0.1", "n2", "::2 10.0.0.2", "n3", "10.0.0.3", tc.srv, records)
			tc.server.Resolve = true
			list := []balancer.Server{tc.server}
			if tc.server.Backup {
				list = append(list, balancer.Server{Addr: "10.9.9.9"})
			}
			bubble(t, z, list, func(up *balancer.Upstream, l *told, next func()) {

				require.ElementsMatch(t, tc.want, peersOf(up))
				for _, s := range up.Snapshot().Peers {
					require.Contains(t, []string{"n1", "n2", "n3", "10.9.9.9"}, s.Server.Name, "the host is the text of the ring")
				}
			})
		})
	}
}

// Equal records are one peer (number 22 of "What differs"): doubled addresses, equal SRV
// records, two hosts with one address; the best priority counts, and then the largest
// weight. A record with port 0 is none.
func TestEqualRecords(t *testing.T) {
	z := newZone("twice", "10.0.0.9 10.0.0.9", "n1", "10.0.0.1", "n2", "10.0.0.1",
		"_http._tcp.app", "n1:81 1 2, n1:81 1 2, n2:81 1 5, n1:81 2 9, n1:82 1 1, n1:0 1 1")
	servers := []balancer.Server{{Addr: "twice", Resolve: true}, {Addr: "app", Resolve: true, Service: "http"}}
	bubble(t, z, servers, func(up *balancer.Upstream, _ *told, _ func()) {
		require.Equal(t, []string{"10.0.0.9:80 w=1", "10.0.0.1:81 w=5", "10.0.0.1:82 w=1"}, peersOf(up))
	})
}

func TestServiceIsLookedUpAgain(t *testing.T) {
	z := newZone("n1", "10.0.0.1", "n2", "10.0.0.2", "_http._tcp.app", "n1:81 1 1, n2:82 1 1")
	bubble(t, z, []balancer.Server{{Addr: "app", Resolve: true, Service: "http"}}, func(up *balancer.Upstream, l *told, next func()) {
		require.Equal(t, []string{"10.0.0.1:81 w=1", "10.0.0.2:82 w=1"}, peersOf(up))
		// A host of it that is not found keeps its addresses.
		z.set("n2", "")
		z.set("_http._tcp.app", "n2:82 1 3, n1:81 1 1, n3:83 1 1")
		next()
		require.Equal(t, []string{"10.0.0.1:81 w=1", "10.0.0.2:82 w=3"}, peersOf(up))
		require.Equal(t, "set; app error", l.take(), "the weight is new, no address is")
		// What is found is told beside what is not.
		z.set("n3", "10.0.0.3")
		next()
		require.Equal(t, []string{"10.0.0.1:81 w=1", "10.0.0.2:82 w=3", "10.0.0.3:83 w=1"}, peersOf(up))
		require.Equal(t, "set; app +10.0.0.3:83; app error", l.take())
		z.set("n2", "10.0.0.4")
		z.set("_http._tcp.app", "n2:82 1 3, n1:81 2 1")
		next()
		require.Equal(t, []string{"10.0.0.4:82 w=3", "10.0.0.1:81 w=1 b"}, peersOf(up))
		require.Equal(t, "set; app +10.0.0.4:82 -10.0.0.2:82 -10.0.0.3:83", l.take())
		// "There is no such service here", and no ports: as if there were no answer.
		z.set("_http._tcp.app", ".:0 1 1, :81 1 1, n1:0 1 1")
		next()
		require.Equal(t, "app error", l.take())
		require.Equal(t, 2, len(up.Snapshot().Peers))
	})
}

// An answer of which no set can be made changes nothing.
func TestAnswerThatTheMethodRefuses(t *testing.T) {
	z := newZone("a", "10.0.0.1 10.0.0.2")
	synctest.Test(t, func(t *testing.T) {
		l := &told{}
		up := newUpstream(t, balancer.Config{Servers: []balancer.Server{{Addr: "a", Resolve: true}}, Resolver: z, OnEvent: l.add, Method: refuser{}})
		z.set("a", "10.0.0.1 10.0.0.2 10.0.0.3")
		time.Sleep(33 * time.Second)
		synctest.Wait()
		require.Equal(t, "a error", l.take())
		require.Equal(t, "10.0.0.1:80 10.0.0.2:80", addrs(up))
		z.set("a", "10.0.0.4")
		time.Sleep(33 * time.Second)
		synctest.Wait()
		require.Equal(t, "10.0.0.4:80", addrs(up))
		require.NoError(t, up.Close())
	})
}

// A panic where a name is looked up again is a failure like any other: the last good set
// stays, and the next look-up finds what there is.
func TestPanicWhereNamesAreLookedUpAgain(t *testing.T) {
	var angry atomic.Bool
	for name, c := range map[string]balancer.Config{
		"Resolver": {Resolver: moody{newZone("a", "10.0.0.1"), &angry}},
		"Method":   {Resolver: newZone("a", "10.0.0.1"), Method: moodyMethod{&angry}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &told{}
				c.Servers, c.OnEvent, c.ResolveInterval = []balancer.Server{{Addr: "a", Resolve: true}}, l.add, time.Minute
				up := newUpstream(t, c)
				next := func() { time.Sleep(66 * time.Second); synctest.Wait() }
				z, ok := c.Resolver.(*zone)
				if !ok {
					z = c.Resolver.(moody).zone
				}
				z.set("a", "10.0.0.2")
				angry.Store(true)
				next()
				require.Contains(t, l.take(), "a error")
				require.Equal(t, "10.0.0.1:80", addrs(up))
				angry.Store(false)
				next()
				require.Equal(t, "set; a +10.0.0.2 -10.0.0.1", l.take())
				require.Equal(t, "10.0.0.2:80", addrs(up))
				require.NoError(t, up.Close())
			})
		})
	}
}

// moody is a zone that panics while it is angry; so does moodyMethod.
type moody struct {
	*zone
	angry *atomic.Bool
}

func (m moody) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if m.angry.Load() {
		panic("angry")
	}
	return m.zone.LookupNetIP(ctx, network, host)
}

type moodyMethod struct{ angry *atomic.Bool }

func (m moodyMethod) Build(*peer.Set) (peer.Selector, error) {
	if m.angry.Load() {
		panic("angry")
	}
	return peer.Selector{Pick: peer.PickAll}, nil
}
func (moodyMethod) Describe() peer.Description { return peer.Description{} }

// A resolver that knows no SRV records is refused for a service, by name.
func TestServiceNeedsAResolverThatKnowsIt(t *testing.T) {
	for _, c := range []balancer.Config{
		{Resolver: names{}, Servers: []balancer.Server{{Addr: "app", Service: "http", Resolve: true}}},
		{Resolver: newZone(), Servers: []balancer.Server{{Addr: "10.0.0.1", Service: "http", Resolve: true}}},
	} {
		_, err := balancer.New(context.Background(), c)
		var e *balancer.ConfigError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "Service", e.Field)
	}
	_, err := balancer.New(context.Background(), balancer.Config{Resolver: newZone(), Servers: []balancer.Server{{Addr: "app", Service: "http", Resolve: true}}})
	require.ErrorContains(t, err, "_http._tcp.app")
}
