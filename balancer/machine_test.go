package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/roundrobin"
)

// Updates, requests, failures and names, mixed: no request is lost, no count leaks, and
// what stays keeps its state.
func TestChangesMixedWithRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			m := newMachine(t)
			defer m.up.Close()
			t.Repeat(map[string]func(*rapid.T){
				"":         m.check,
				"request":  m.request,
				"answer":   m.answer,
				"fail":     m.fail,
				"abandon":  m.abandon,
				"exchange": m.exchange,
				"update":   m.update,
				"add":      m.add,
				"remove":   m.remove,
				"change":   m.change,
				"refused":  m.refused,
				"same":     m.same,
				"names":    m.changeNames,
				"time":     m.pass,
			})
			m.end(t)
		})
	})
}

// identity is a peer: an address since it was added last.
type identity struct {
	addr string
	born int
}

// open is a request that holds a peer.
type open struct {
	try   *balancer.Try
	body  io.Closer // or this: the answer of a RoundTripper
	at    identity
	tried []identity
	// backup: it got a backup last. It does not go back to a primary peer that can be
	// had again, as in nginx, unless the set has changed.
	backup bool
}

type machine struct {
	up    *balancer.Upstream
	rt    http.RoundTripper
	zone  *zone
	names map[string]string // what the upstream has seen of the zone
	born  map[string]int    // of the present peers
	turn  int
	open  []*open
	idle  atomic.Int64 // removed peers that were told to be gone
	// broken are the peers that refuse RoundTripper's requests.
	mu     sync.Mutex
	broken map[string]bool
	asked  []string
}

var machineHosts = []string{"n1", "n2"}

func newMachine(t *rapid.T) *machine {
	m := &machine{zone: newZone(), names: map[string]string{}, born: map[string]int{}, broken: map[string]bool{}}
	for _, host := range machineHosts {
		m.zone.set(host, "10.0.0.1 10.0.0.2")
		m.names[host] = "10.0.0.1 10.0.0.2"
	}
	method := rapid.SampledFrom([]peer.Method{roundrobin.New(), leastconn.New(), leasttime.Method{Inflight: true},
		hash.New("$request_uri"), hash.NewConsistent("$request_uri"), random.New(), random.Method{Two: true}}).Draw(t, "method")
	list := m.draw(t)
	up, err := balancer.New(context.Background(), balancer.Config{Name: "backend", Method: method, Servers: list, Resolver: m.zone, Source: rand.NewPCG(1, 2),
		ResolveInterval: time.Minute, OnEvent: func(e balancer.Event) {
			if e.Kind == peer.PeerIdle && e.Removed {
				m.idle.Add(1)
			}
		}})
	require.NoError(t, err)
	m.up, m.rt = up, up.RoundTripper(m)
	m.follow()
	return m
}

// RoundTrip is the base.
func (m *machine) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r.URL.Host)
	if m.broken[r.URL.Host] {
		return nil, errRefused
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(r.URL.Host)), Request: r}, nil
}

// draw draws server lines, the first of which can be had.
func (m *machine) draw(t *rapid.T) []balancer.Server {
	all := []string{"10.1.0.1:80", "10.1.0.2:80", "10.1.0.3:80", "[::1]:80", "n1:81", "n2:82"}
	addrs := rapid.Permutation(all).Draw(t, "addrs")[:rapid.IntRange(1, len(all)).Draw(t, "n")]
	var list []balancer.Server
	for i, a := range addrs {
		list = append(list, m.drawLine(t, a, i > 0))
	}
	return list
}

func (m *machine) drawLine(t *rapid.T, addr string, free bool) balancer.Server {
	s := balancer.Server{Addr: addr, Resolve: strings.HasPrefix(addr, "n"), Weight: rapid.SampledFrom([]int{0, 1, 2, 5, 1000}).Draw(t, "weight"),
		MaxFails: rapid.SampledFrom([]int{balancer.NoMaxFails, 1, 3}).Draw(t, "max fails")}
	if free {
		s.Backup = rapid.Bool().Draw(t, "backup")
		s.Down = rapid.IntRange(0, 5).Draw(t, "down") == 0
		s.Drain = rapid.IntRange(0, 5).Draw(t, "drain") == 0
		s.MaxConns = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "max conns")
	}
	return s
}

// expected are the addresses that the lines mean.
func (m *machine) expected() (list []string) {
	for _, s := range m.up.Servers() {
		host, port, _ := strings.Cut(s.Addr, ":")
		if !s.Resolve {
			list = append(list, s.Addr)
			continue
		}
		for _, ip := range strings.Fields(m.names[host]) {
			list = append(list, ip+":"+port)
		}
	}
	slices.Sort(list)
	return list
}

// follow notes which peers are new.
func (m *machine) follow() {
	m.turn++
	now := map[string]int{}
	for _, addr := range m.expected() {
		if born, ok := m.born[addr]; ok {
			now[addr] = born
		} else {
			now[addr] = m.turn
		}
	}
	m.born = now
}

// eligible returns a peer that a request can have for sure.
func (m *machine) eligible(o *open) string {
	for _, s := range m.up.Snapshot().Peers {
		if o.backup && !s.Server.Backup || s.Removed || s.Server.Down || s.Server.Drain || s.Fails > 0 || s.Server.MaxConns > 0 && s.Conns >= int64(s.Server.MaxConns) {
			continue
		}
		if !slices.Contains(o.tried, identity{s.Server.Addr, m.born[s.Server.Addr]}) {
			return s.Server.Addr
		}
	}
	return ""
}

// next gives a request its next peer, and holds it to the rules.
func (m *machine) next(t *rapid.T, o *open) bool {
	can := m.eligible(o)
	if !o.try.Next() {
		if errors.Is(o.try.Err(), balancer.ErrNoLivePeers) {
			require.Empty(t, can, "a request was lost")
		} else {
			require.NotEmpty(t, o.tried)
		}
		return false
	}
	p := o.try.Peer()
	o.at, o.backup = identity{p.Addr, m.born[p.Addr]}, p.Backup
	require.Contains(t, m.born, p.Addr, "a removed peer was given")
	require.False(t, p.Down || p.Drain)
	require.NotContains(t, o.tried, o.at, "a peer was given twice")
	o.tried = append(o.tried, o.at)
	return true
}

func (m *machine) request(t *rapid.T) {
	o := &open{try: m.up.Start(context.Background(), balancer.Input{Key: rapid.StringMatching(`[a-f]`).Draw(t, "key")})}
	if m.next(t, o) {
		m.open = append(m.open, o)
	}
}

// take takes an open request out.
func (m *machine) take(t *rapid.T, tries bool) *open {
	var list []int
	for i, o := range m.open {
		if !tries || o.try != nil {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		t.Skip("nothing is open")
	}
	i := rapid.SampledFrom(list).Draw(t, "which")
	o := m.open[i]
	m.open = slices.Delete(m.open, i, i+1)
	return o
}

func (m *machine) answer(t *rapid.T) {
	o := m.take(t, false)
	if o.body != nil {
		require.NoError(t, o.body.Close())
		return
	}
	o.try.Done(nil)
	require.NoError(t, o.try.Err())
}

func (m *machine) fail(t *rapid.T) {
	o := m.take(t, true)
	o.try.Done(rapid.SampledFrom([]error{errRefused, balancer.ErrNextPeer}).Draw(t, "how"))
	if m.next(t, o) {
		m.open = append(m.open, o)
	}
}

func (m *machine) abandon(t *rapid.T) { m.take(t, true).try.Close() }

// exchange sends a request through the RoundTripper. Peers may be broken, and the
// answer may be left open.
func (m *machine) exchange(t *rapid.T) {
	m.broken = map[string]bool{}
	for _, addr := range slices.Sorted(maps.Keys(m.born)) {
		m.broken[addr] = rapid.IntRange(0, 3).Draw(t, "broken") == 0
	}
	var well bool
	for _, s := range m.up.Snapshot().Peers {
		_, present := m.born[s.Server.Addr]
		// Tries end only when every peer was asked.
		well = well || present && !s.Removed && !m.broken[s.Server.Addr] && !s.Server.Down && !s.Server.Drain && s.Fails == 0 && s.Server.MaxConns == 0
	}
	m.asked = nil
	r, _ := http.NewRequest("GET", "http://backend/"+rapid.StringMatching(`[a-f]`).Draw(t, "path"), nil)
	resp, err := m.rt.RoundTrip(r)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(m.asked))), len(m.asked), "a peer was asked twice")
	if err != nil {
		require.False(t, well, "a request was lost")
		return
	}
	last := m.asked[len(m.asked)-1]
	if rapid.Bool().Draw(t, "leave open") {
		m.open = append(m.open, &open{body: resp.Body, at: identity{last, m.born[last]}})
		return
	}
	require.NoError(t, resp.Body.Close())
}

// kept holds a change to what it must keep.
func (m *machine) kept(t *rapid.T, change func() error) {
	before := m.up.Snapshot().Peers
	require.NoError(t, change())
	m.follow()
	after := map[identity]peer.PeerSnapshot{}
	usable := func(list []peer.PeerSnapshot) (sum [3]int) {
		for _, s := range list {
			if !s.Removed && !s.Server.Down && !s.Server.Drain {
				sum[s.Group] += s.Server.Weight
			}
		}
		return sum
	}
	now := m.up.Snapshot().Peers
	for _, s := range now {
		if !s.Removed {
			after[identity{s.Server.Addr, m.born[s.Server.Addr]}] = s
		}
	}
	for _, was := range before {
		is, stays := after[identity{was.Server.Addr, m.born[was.Server.Addr]}]
		if !stays || was.Removed || m.born[was.Server.Addr] == m.turn {
			continue
		}
		require.Equal(t, was.Fails, is.Fails)
		require.Equal(t, was.Conns, is.Conns)
		require.Equal(t, was.Accessed, is.Accessed)
		require.Equal(t, was.Checked, is.Checked)
		require.Equal(t, was.Times, is.Times)
		require.Equal(t, was.OldestHeld, is.OldestHeld)
		if was.Group == is.Group && was.Server.Weight == is.Server.Weight && usable(before)[is.Group] <= usable(now)[is.Group] {
			require.Equal(t, was.CurrentWeight, is.CurrentWeight)
			require.Equal(t, was.EffectiveWeight, is.EffectiveWeight)
		}
	}
	for id, is := range after {
		if id.born == m.turn {
			require.Zero(t, is.CurrentWeight, "a new peer is as new")
			require.Zero(t, is.Fails)
			require.Zero(t, is.Conns)
			require.EqualValues(t, is.Server.Weight, is.EffectiveWeight)
		}
	}
}

var ctxb = context.Background()

func (m *machine) update(t *rapid.T) {
	list := m.draw(t)
	m.learnt(list)
	m.kept(t, func() error { return m.up.Update(ctxb, list) })
}

// learnt notes that names which are new in the lines are looked up.
func (m *machine) learnt(list []balancer.Server) {
	for _, host := range machineHosts {
		has := func(s balancer.Server) bool { return strings.HasPrefix(s.Addr, host) }
		if slices.ContainsFunc(list, has) && !slices.ContainsFunc(m.up.Servers(), has) {
			m.names[host] = m.zone.hosts[host]
		}
	}
}

func (m *machine) add(t *rapid.T) {
	s := m.drawLine(t, rapid.SampledFrom([]string{"10.2.0.1:80", "10.2.0.2:80", "10.2.0.3:80"}).Draw(t, "addr"), true)
	if _, is := m.born[s.Addr]; is {
		t.Skip("it is there")
	}
	m.kept(t, func() error { return m.up.Add(ctxb, s) })
}

func (m *machine) line(t *rapid.T) balancer.Server {
	return rapid.SampledFrom(m.up.Servers()).Draw(t, "line")
}

func (m *machine) remove(t *rapid.T) {
	s := m.line(t)
	left := slices.DeleteFunc(m.up.Servers(), func(o balancer.Server) bool { return o.Addr == s.Addr || o.Backup })
	if len(left) == 0 {
		before := m.up.Snapshot().Peers
		require.Error(t, m.up.Remove(s.Addr))
		require.Equal(t, before, m.up.Snapshot().Peers)
		return
	}
	m.kept(t, func() error { return m.up.Remove(s.Addr) })
}

func (m *machine) change(t *rapid.T) {
	s := m.line(t)
	to := m.drawLine(t, s.Addr, true)
	to.Backup = s.Backup
	m.kept(t, func() error { return m.up.UpdateServer(ctxb, s.Addr, func(s *balancer.Server) { *s = to }) })
}

func (m *machine) refused(t *rapid.T) {
	before, lines := m.up.Snapshot().Peers, m.up.Servers()
	require.Error(t, m.up.Add(ctxb, balancer.Server{Addr: "10.3.0.1:80", Weight: -1}))
	require.Error(t, m.up.Add(ctxb, balancer.Server{Addr: "unknown:80", Resolve: true}))
	require.Equal(t, before, m.up.Snapshot().Peers)
	require.Equal(t, lines, m.up.Servers())
}

func (m *machine) same(t *rapid.T) {
	before := m.up.Snapshot().Peers
	require.NoError(t, m.up.Update(ctxb, m.up.Servers()))
	require.Equal(t, before, m.up.Snapshot().Peers)
}

// changeNames gives a name another answer and waits until it is looked up.
func (m *machine) changeNames(t *rapid.T) {
	host := rapid.SampledFrom(machineHosts).Draw(t, "host")
	n := rapid.IntRange(0, 4).Draw(t, "addresses")
	ips := rapid.Permutation([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}).Draw(t, "answer")[:n]
	m.zone.set(host, strings.Join(ips, " "))
	time.Sleep(66 * time.Second)
	synctest.Wait()
	for _, host := range machineHosts {
		named := slices.ContainsFunc(m.up.Servers(), func(s balancer.Server) bool { return strings.HasPrefix(s.Addr, host) })
		if answer := m.zone.hosts[host]; named && answer != "" {
			m.names[host] = answer
		}
	}
	m.follow()
	m.zone.set(host, m.names[host]) // so that an update finds it
}

func (m *machine) pass(t *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
	synctest.Wait()
}

// check counts who holds what.
func (m *machine) check(t *rapid.T) {
	held, got := map[string]int{}, map[string]int{}
	var present []string
	for _, o := range m.open {
		held[o.at.addr]++
	}
	for _, s := range m.up.Snapshot().Peers {
		if s.Conns > 0 {
			got[s.Server.Addr] += int(s.Conns)
		}
		if !s.Removed {
			present = append(present, s.Server.Addr)
		} else {
			require.NotZero(t, s.Conns, "a removed peer that nobody holds is forgotten")
		}
		require.Equal(t, s.Conns > 0, s.OldestHeld > 0)
	}
	require.Equal(t, held, got)
	slices.Sort(present)
	require.Equal(t, m.expected(), present)
}

func (m *machine) end(t *rapid.T) {
	for _, o := range m.open {
		if o.try != nil {
			o.try.Close()
		} else {
			o.body.Close()
		}
	}
	m.open = nil
	m.check(t)
	for _, s := range m.up.Snapshot().Peers {
		if s.Server.Down || s.Server.Drain {
			require.NoError(t, m.up.WaitDrained(ctxb, s.Server.Addr))
		}
	}
	require.NoError(t, m.up.Close())
	synctest.Wait()
}

// Eight writers and sixty-four readers: what is never taken away answers every
// request, and nothing is held in the end.
func TestManyWritersAndReaders(t *testing.T) {
	var idle atomic.Int64
	m := &machine{broken: map[string]bool{}}
	up := newUpstream(t, balancer.Config{Servers: servers("keep"), Method: hash.NewConsistent("$request_uri"), Retry: balancer.Retry{On: balancer.KindError},
		OnEvent: func(e balancer.Event) {
			if e.Kind == peer.PeerIdle {
				idle.Add(1)
			}
		}})
	for w := range 8 {
		m.broken[fmt.Sprint("w", w, "-2")] = true
	}
	rt := up.RoundTripper(m)
	var readers, writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			own := fmt.Sprint("w", w, "-")
			for i := range 60 {
				addr := fmt.Sprint(own, i%4)
				if err := up.Add(ctxb, balancer.Server{Addr: addr, Weight: 1 + i%3}); err != nil {
					t.Error(err)
				}
				if err := up.UpdateServer(ctxb, addr, func(s *balancer.Server) { s.Drain = i%2 == 0; s.Weight = 2 }); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					if err := up.WaitDrained(ctxb, addr); err != nil {
						t.Error(err)
					}
				}
				if err := up.Remove(addr); err != nil {
					t.Error(err)
				}
				_ = up.Snapshot()
				up.CloseIdleConnections()
			}
		})
	}
	for g := range 64 {
		readers.Go(func() {
			for i := range 50 {
				r, _ := http.NewRequest("GET", fmt.Sprint("http://backend/", g, "-", i), nil)
				resp, err := rt.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					io.Copy(io.Discard, resp.Body)
				}
				resp.Body.Close()
			}
		})
	}
	writers.Wait()
	readers.Wait()
	require.Equal(t, "keep", addrs(up))
	require.Zero(t, up.Snapshot().Peers[0].Conns)
	require.NotZero(t, idle.Load())
}
