package peer_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// updatable is an upstream on a fake clock whose picks are read as text.
type updatable struct {
	*peer.Upstream
	t   require.TestingT
	now time.Duration
}

func newUpdatable(t require.TestingT, m peer.Method, o peer.Options, servers ...peer.Server) *updatable {
	u := &updatable{t: t, now: 1700000000 * time.Second}
	o.Clock = func() time.Duration { return u.now }
	var err error
	u.Upstream, err = peer.New(servers, m, &o)
	require.NoError(t, err)
	return u
}

// begin starts a request.
func (u *updatable) begin() *peer.Request {
	r := &peer.Request{}
	require.NoError(u.t, u.Begin(r))
	return r
}

// get returns the address of the peer that r gets, "" for none.
func (u *updatable) get(r *peer.Request) string {
	if err := u.Get(r); err != nil {
		require.ErrorIs(u.t, err, peer.ErrNoLivePeers)
		return ""
	}
	p, ok := u.Peer(r)
	require.True(u.t, ok)
	return p.Server.Addr
}

// picks makes n requests that end well at once.
func (u *updatable) picks(n int) string {
	var all []string
	for range n {
		r := u.begin()
		all = append(all, u.get(r))
		require.NoError(u.t, u.Free(r, peer.OK))
	}
	return strings.Join(all, " ")
}

func (u *updatable) update(servers ...peer.Server) {
	require.NoError(u.t, u.Update(servers))
}

// longest is the greatest number of equal picks in a row.
func longest(picks string) int {
	most, run, last := 0, 0, ""
	for _, p := range strings.Fields(picks) {
		if p != last {
			run, last = 0, p
		}
		run++
		most = max(most, run)
	}
	return most
}

func TestUpdateKeepsTheStateOfPeersThatStay(t *testing.T) {
	a, b, c := peer.Server{Addr: "a", Weight: 5, MaxFails: 3}, peer.Server{Addr: "b"}, peer.Server{Addr: "c"}
	u := newUpdatable(t, nil, peer.Options{}, a, b, c)
	held := u.begin()
	require.Equal(t, "a", u.get(held))
	failed := u.begin()
	require.Equal(t, "a", u.get(failed))
	require.NoError(t, u.Free(failed, peer.Failed))
	before := []peer.State{u.State(peer.Primary, 0), u.State(peer.Primary, 1), u.State(peer.Primary, 2)}

	u.update(peer.Server{Addr: "new"}, c, a, b)

	require.Equal(t, before[0], u.State(peer.Primary, 2), "a")
	require.Equal(t, before[1], u.State(peer.Primary, 3), "b")
	require.Equal(t, before[2], u.State(peer.Primary, 1), "c")
	require.Equal(t, peer.State{EffectiveWeight: 1}, u.State(peer.Primary, 0), "new")
	require.NoError(t, u.Free(held, peer.OK))
	require.Zero(t, u.State(peer.Primary, 2).Conns)
}

func TestBadUpdateChangesNothing(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", Weight: 5}, peer.Server{Addr: "b"}, peer.Server{Addr: "c"})
	require.Equal(t, "a a b", u.picks(3))
	for name, bad := range map[string][]peer.Server{
		"no servers":      nil,
		"only backups":    {{Addr: "a", Backup: true}},
		"negative weight": {{Addr: "a"}, {Addr: "b", Weight: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			var e *peer.ConfigError
			require.ErrorAs(t, u.Update(bad), &e)
		})
	}
	require.Equal(t, "a c a a", u.picks(4))
}

// A set that says the same in other words is the same set.
func TestUpdateWithTheSameServersBeforeEveryRequest(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", Weight: 5}, peer.Server{Addr: "b"}, peer.Server{Addr: "c"})
	set := u.Set()
	var picks []string
	for i := range 7 {
		same := []peer.Server{{Addr: "a", Weight: 5}, {Addr: "b"}, {Addr: "c"}}
		if i%2 == 1 {
			same[1] = peer.Server{Addr: "b", Name: "b", Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second}
		}
		u.update(same...)
		picks = append(picks, u.picks(1))
	}
	require.Equal(t, "a a b a c a a", strings.Join(picks, " "))
	require.Same(t, set, u.Set())
}

// Weights are worth requests: what a peer is owed in requests stays small
// whatever its weight becomes. With cw kept as it was, the second case would send 500 in a row.
func TestChangedWeightMakesNoBurst(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after [3]int // weights; 0: not there
		most          int    // longest run of one peer, of what is a fair run in between
	}{
		{"1:1 to 1000:1", [3]int{1, 1}, [3]int{1000, 1}, 1001},
		{"1000:1 to 1:1", [3]int{1000, 1}, [3]int{1, 1}, 2},
		{"the heavy one goes", [3]int{1000, 1, 1}, [3]int{0, 1, 1}, 2},
		{"10:10 to 1:1", [3]int{10, 10}, [3]int{1, 1}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			servers := func(weights [3]int) (list []peer.Server) {
				for i, w := range weights {
					if w > 0 {
						list = append(list, peer.Server{Addr: string(rune('a' + i)), Weight: w})
					}
				}
				return list
			}
			for _, at := range []int{0, 1, 2, 250, 500, 501, 750, 1000, 1001, 1500} {
				u := newUpdatable(t, nil, peer.Options{}, servers(tt.before)...)
				u.picks(at)
				u.update(servers(tt.after)...)
				require.LessOrEqual(t, longest(u.picks(3000)), tt.most, "after %d picks", at)
			}
		})
	}
}

func TestChangedWeightOfAWeakenedPeer(t *testing.T) {
	for _, tt := range []struct {
		name             string
		weight, fails    int
		to               int
		effective, after int64
	}{
		{"settled, grows", 10, 0, 20, 10, 20},
		{"settled, shrinks", 10, 0, 4, 10, 4},
		{"weakened, grows", 10, 1, 20, 5, 5},
		{"weakened, shrinks below", 10, 1, 4, 5, 4},
		{"weakened, shrinks above", 10, 1, 8, 5, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", Weight: tt.weight, MaxFails: 2}, peer.Server{Addr: "b"})
			for range tt.fails {
				r := u.begin()
				require.Equal(t, "a", u.get(r))
				require.NoError(t, u.Free(r, peer.Failed))
			}
			require.Equal(t, tt.effective, u.State(peer.Primary, 0).EffectiveWeight)
			u.update(peer.Server{Addr: "a", Weight: tt.to, MaxFails: 2}, peer.Server{Addr: "b"})
			require.Equal(t, tt.after, u.State(peer.Primary, 0).EffectiveWeight)
		})
	}
}

func TestRequestInFlightOverAnUpdate(t *testing.T) {
	var gone []string
	u := newUpdatable(t, nil, peer.Options{OnIdle: func(p peer.Peer, _ any, removed bool) {
		gone = append(gone, fmt.Sprint(p.Server.Addr, " ", removed))
	}}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "c"})
	r := u.begin()
	require.Equal(t, "a", u.get(r))

	u.update(peer.Server{Addr: "b"}, peer.Server{Addr: "d"})
	require.Equal(t, []string{"c true"}, gone, "nobody held c")
	p, ok := u.Peer(r)
	require.True(t, ok)
	require.Equal(t, "a", p.Server.Addr, "it still holds a, which was removed")
	require.NoError(t, u.Free(r, peer.Failed))
	require.Equal(t, []string{"c true", "a true"}, gone)

	u.update(peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "d"})
	require.Zero(t, u.State(peer.Primary, 0).Fails, "a came back as a new peer")

	// What was tried is known by identity: a is not the a that was tried.
	got := []string{u.get(r)}
	for range 2 {
		require.NoError(t, u.Free(r, peer.Failed))
		got = append(got, u.get(r))
	}
	require.ElementsMatch(t, []string{"a", "b", "d"}, got)
	require.NoError(t, u.Free(r, peer.OK))
}

// Where one peer alone is left, a request that held another may still be given to it.
func TestRetryGoesToTheOnePeerThatIsLeft(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "c"})
	r := u.begin()
	require.Equal(t, "a", u.get(r))
	u.update(peer.Server{Addr: "d"})
	require.NoError(t, u.Free(r, peer.Failed))
	require.Equal(t, 3, r.Tries(), "the two that were counted, and the new one")
	require.Equal(t, "d", u.get(r))
	require.NoError(t, u.Free(r, peer.Failed))
	require.Zero(t, r.Tries(), "a single peer is not tried again")
}

// A peer that comes while a request is on its way is another try, but never more than
// MaxTries allow.
func TestNewPeersAreMoreTries(t *testing.T) {
	for most, want := range map[int]string{0: "a b c", 2: "a b", 1: "a"} {
		u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a"})
		r := &peer.Request{MaxTries: most}
		require.NoError(t, u.Begin(r))
		var got []string
		for _, next := range []string{"b", "c", ""} {
			got = append(got, u.get(r))
			if next != "" {
				u.update(peer.Server{Addr: next}, peer.Server{Addr: "z", Down: true})
			}
			require.NoError(t, u.Free(r, peer.Failed))
			if r.Tries() == 0 {
				break
			}
		}
		require.Equal(t, want, strings.Join(got, " "), "MaxTries %d", most)
		require.Zero(t, r.Tries())
	}
}

func TestDrainedPeerIsReported(t *testing.T) {
	var idle []string
	u := newUpdatable(t, nil, peer.Options{OnIdle: func(p peer.Peer, _ any, removed bool) {
		idle = append(idle, fmt.Sprint(p.Server.Addr, " ", removed))
	}}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	r := u.begin()
	require.Equal(t, "a", u.get(r))
	u.update(peer.Server{Addr: "a", Drain: true}, peer.Server{Addr: "b", Down: true}, peer.Server{Addr: "c"})
	require.Equal(t, []string{"b false"}, idle)
	require.NoError(t, u.Free(r, peer.OK))
	require.Equal(t, []string{"b false", "a false"}, idle)
	u.update(peer.Server{Addr: "a", Down: true}, peer.Server{Addr: "b", Drain: true}, peer.Server{Addr: "c"})
	require.Len(t, idle, 2, "nobody could have them before either")
}

// Of many that are removed at once hooks and Snapshot tell in list order: the same
// calls are told of in the same words.
func TestRemovedPeersAreToldOfInListOrder(t *testing.T) {
	var idle, events, removed []string
	u := newUpdatable(t, nil, peer.Options{
		OnIdle:  func(p peer.Peer, _ any, _ bool) { idle = append(idle, p.Server.Addr) },
		OnEvent: func(e peer.Event) { events = append(events, e.Peer.Server.Addr) },
	}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "a"}, peer.Server{Addr: "c"}, peer.Server{Addr: "d"},
		peer.Server{Addr: "e"}, peer.Server{Addr: "f"}, peer.Server{Addr: "g", Backup: true}, peer.Server{Addr: "h", Backup: true})
	u.hold("d")
	u.hold("c")
	u.hold("b")
	u.update(peer.Server{Addr: "a"})
	require.Equal(t, "a e f g h", strings.Join(idle, " "), "one a stays")
	require.Equal(t, " a e f g h", strings.Join(events, " "), "after the change of the set")
	for _, p := range u.Snapshot().Peers[1:] {
		removed = append(removed, p.Server.Addr)
	}
	require.Equal(t, "b c d", strings.Join(removed, " "))
}

// Of two peers that a request has tried one is removed: the other one, which is the
// only one now, is not asked twice.
func TestTheOnlyPeerLeftWasTried(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	r := u.begin()
	u.Internal(glue.Key{}).GiveBackTry(r)
	require.Equal(t, "a", u.get(r))
	require.NoError(t, u.Free(r, peer.Failed))
	require.Equal(t, "b", u.get(r))
	u.update(peer.Server{Addr: "a"})
	require.NoError(t, u.Free(r, peer.Failed))
	require.Zero(t, r.Tries())
}

// The same where the other one is removed between two tries. Alone the peer is as good
// as ever to everybody else, and one that is added is another try.
func TestTriedPeerThatIsLeftAlone(t *testing.T) {
	a, b := peer.Server{Addr: "a", Route: "ra"}, peer.Server{Addr: "b"}
	for _, method := range []peer.Method{nil, sticky.Over(nil)} {
		u := newUpdatable(t, method, peer.Options{Policy: peer.Policy{LeastBad: true}}, a, b)
		r := u.begin()
		r.Hint = "ra"
		require.Equal(t, "a", u.get(r))
		require.NoError(t, u.Free(r, peer.Failed))
		u.update(a)
		require.Contains(t, u.explain(r), "a weight=1: tried")
		require.Zero(t, r.Tries())
		require.Equal(t, "a", u.picks(1))
		u.update(a, b)
		require.Equal(t, "b", u.get(r), "it is new")
	}
}

func TestBackupGroupGoesWhileARequestIsInIt(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a"}, peer.Server{Addr: "b", Backup: true})
	r := u.begin()
	require.Equal(t, "a", u.get(r))
	require.NoError(t, u.Free(r, peer.Failed))
	require.Equal(t, "b", u.get(r))
	u.update(peer.Server{Addr: "c"}, peer.Server{Addr: "d"})
	require.NoError(t, u.Free(r, peer.Failed))
	require.Equal(t, "c", u.get(r))
	require.NoError(t, u.Free(r, peer.OK))
}

func TestSlowStartOfAnAddedPeer(t *testing.T) {
	o := peer.Options{Policy: peer.Policy{SlowStart: 100 * time.Second}}
	a, b := peer.Server{Addr: "a"}, peer.Server{Addr: "b"}
	u := newUpdatable(t, nil, o, a)
	u.update(a, b)
	require.Zero(t, strings.Count(u.picks(20), "b"))
	u.now += 50 * time.Second
	require.InDelta(t, 333, strings.Count(u.picks(1000), "b"), 5, "half its weight of 1 against 1")
	u.now += 50 * time.Second
	require.InDelta(t, 500, strings.Count(u.picks(1000), "b"), 1)
}

// Whatever comes in whatever order: every request is freed to its own peer, no
// count leaks, none is given a peer twice, none a peer that is not in the set.
func TestUpdatesMixedWithRequests(t *testing.T) {
	scanMost := engine.ScanMost
	t.Cleanup(func() { engine.ScanMost = scanMost })
	rapid.Check(t, func(t *rapid.T) {
		engine.ScanMost = rapid.SampledFrom([]int{0, 4, 1000}).Draw(t, "scan most")
		method := rapid.SampledFrom([]peer.Method{nil, leastconn.New()}).Draw(t, "method")
		servers := rapid.Custom(func(t *rapid.T) (list []peer.Server) {
			addrs := rapid.SliceOfNDistinct(rapid.IntRange(0, 200), 1, 12, rapid.ID).Draw(t, "addrs")
			for i, a := range addrs {
				list = append(list, peer.Server{
					Addr: fmt.Sprint("p", a), Weight: rapid.IntRange(1, 5).Draw(t, "weight"),
					MaxFails: rapid.SampledFrom([]int{peer.NoMaxFails, 1, 2}).Draw(t, "max fails"),
					MaxConns: rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "max conns"),
					Down:     rapid.IntRange(0, 5).Draw(t, "down") == 0,
					Backup:   i > 0 && rapid.IntRange(0, 3).Draw(t, "backup") == 0,
				})
			}
			return list
		})
		first := servers.Draw(t, "servers")
		u := newUpdatable(t, method, peer.Options{}, first...)
		type request struct {
			*peer.Request
			held  string
			tried []string
		}
		present := first
		incarnation := map[string]int{} // how often an address was made new
		id := func(addr string) string { return fmt.Sprint(addr, "#", incarnation[addr]) }
		var open []*request
		var held []*request
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) { open = append(open, &request{Request: u.begin()}) },
			"get": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "request")
				r := open[i]
				addr := u.get(r.Request)
				open = slices.Delete(open, i, i+1)
				if addr == "" {
					return
				}
				require.True(t, slices.ContainsFunc(present, func(s peer.Server) bool { return s.Addr == addr && !s.Down }))
				if len(present) > 1 {
					require.NotContains(t, r.tried, id(addr))
				}
				r.tried, r.held = append(r.tried, id(addr)), addr
				held = append(held, r)
			},
			"free": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "request")
				r := held[i]
				p, ok := u.Peer(r.Request)
				require.True(t, ok)
				require.Equal(t, r.held, p.Server.Addr)
				o := rapid.SampledFrom([]peer.Outcome{peer.OK, peer.Failed, peer.Abandoned}).Draw(t, "outcome")
				require.NoError(t, u.Free(r.Request, o))
				held = slices.Delete(held, i, i+1)
				open = append(open, r)
			},
			"update": func(t *rapid.T) {
				next := servers.Draw(t, "servers")
				for _, s := range next {
					if !slices.ContainsFunc(present, func(p peer.Server) bool { return p.Addr == s.Addr }) {
						incarnation[s.Addr]++
					}
				}
				u.update(next...)
				present = next
			},
			"time": func(t *rapid.T) { u.now += time.Duration(rapid.IntRange(0, 12).Draw(t, "s")) * time.Second },
			"": func(t *rapid.T) {
				conns := map[string]int64{}
				for _, r := range held {
					if r.tried[len(r.tried)-1] == id(r.held) {
						conns[r.held]++
					}
				}
				for _, s := range states(u.Upstream) {
					require.Equal(t, conns[s.addr], s.Conns, s.addr)
					require.GreaterOrEqual(t, s.EffectiveWeight, int64(0))
				}
			},
		})
	})
}

type addressed struct {
	addr string
	peer.State
}

func states(u *peer.Upstream) (list []addressed) {
	set := u.Set()
	for _, g := range []int{peer.Primary, peer.Backup} {
		for i := range set.Len(g) {
			list = append(list, addressed{set.Server(g, i).Addr, u.State(g, i)})
		}
	}
	return list
}

func TestWritersAndReaders(t *testing.T) {
	u, err := peer.New([]peer.Server{{Addr: "a"}, {Addr: "b"}}, nil, nil)
	require.NoError(t, err)
	var readers, writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 50 {
				list := []peer.Server{{Addr: "a", Weight: 1 + i%3}}
				for k := range (w + i) % 20 {
					list = append(list, peer.Server{Addr: fmt.Sprint("p", k), Drain: k == 3})
				}
				if err := u.Update(list); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 64 {
		readers.Go(func() {
			r := &peer.Request{}
			for i := range 200 {
				if err := u.Begin(r); err != nil {
					t.Error(err)
				}
				for range 3 {
					if u.Get(r) != nil {
						break
					}
					if err := u.Free(r, peer.Outcome(i%4)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writers.Wait()
	readers.Wait()
	for _, s := range states(u) {
		require.Zero(t, s.Conns, s.addr)
	}
}

// A slot that nobody has any more means nobody: who has tried the peer that had it
// has not tried the first of the list instead.
func TestTriedPeerThatIsGone(t *testing.T) {
	scanMost := engine.ScanMost
	t.Cleanup(func() { engine.ScanMost = scanMost })
	for _, engine.ScanMost = range []int{0, 1000} {
		var servers []peer.Server
		for i := range 14 {
			servers = append(servers, peer.Server{Addr: fmt.Sprint("p", i)})
		}
		u := newUpdatable(t, nil, peer.Options{}, servers...)
		r := u.hold("p6")
		require.NoError(t, u.Free(r, peer.Next))
		u.picks(7)
		u.update(append(slices.Clone(servers[:6]), servers[7:]...)...)
		u.picks(13)
		require.Equal(t, "p0", u.get(r))
	}
}

// The hooks of an Update may call Update.
func TestHooksThatUpdate(t *testing.T) {
	var u *updatable
	calls := 0
	again := func() {
		if calls++; calls < 3 {
			u.update(peer.Server{Addr: fmt.Sprint("x", calls)}, peer.Server{Addr: "b"})
		}
	}
	u = newUpdatable(t, nil, peer.Options{OnIdle: func(peer.Peer, any, bool) { again() }, OnEvent: func(peer.Event) { again() }},
		peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	u.update(peer.Server{Addr: "c"}, peer.Server{Addr: "b"})
	require.GreaterOrEqual(t, calls, 3)
	require.Equal(t, "x2", u.Set().Server(peer.Primary, 0).Addr)
}

// An update leaves in who is in, and out who is out, as far as max_fails stays.
func TestUpdateKeepsWhoIsOut(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{KeepLast: true}}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	for _, addr := range []string{"a", "b"} {
		require.NoError(t, u.Free(u.hold(addr), peer.Failed))
	}
	u.update(peer.Server{Addr: "a", Weight: 2}, peer.Server{Addr: "b"})
	require.Equal(t, "b b", u.picks(2), "the last one is still kept")

	u = newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", MaxFails: 3}, peer.Server{Addr: "b"})
	for range 2 {
		require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	}
	u.update(peer.Server{Addr: "a", MaxFails: 2}, peer.Server{Addr: "b"})
	require.True(t, u.Snapshot().Peers[0].Out, "two failures are enough now")
	u.update(peer.Server{Addr: "a", MaxFails: 3}, peer.Server{Addr: "b"})
	require.False(t, u.Snapshot().Peers[0].Out, "and not any more")
}

// Who is out when max_fails changes: as the failures say, unless they do not say it all.
func TestUpdateOfMaxFails(t *testing.T) {
	for _, tt := range []struct {
		name            string
		policy          peer.Policy
		before, after   int // max_fails of b
		outThen, outNow bool
	}{
		{"fewer", peer.Policy{}, 3, 2, false, true},
		{"fewer, but still more than have been", peer.Policy{}, 4, 3, false, false},
		{"more", peer.Policy{}, 2, 3, true, false},
		{"none", peer.Policy{}, 2, peer.NoMaxFails, true, false},
		{"fewer, within a window", peer.Policy{Window: time.Minute}, 3, 2, false, false},
		{"fewer, of the last one", peer.Policy{KeepLast: true}, 3, 2, false, false},
		{"fewer, within a window, of one that is out", peer.Policy{Window: time.Minute}, 2, 1, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := peer.Server{Addr: "a", FailTimeout: time.Hour}
			u := newUpdatable(t, nil, peer.Options{Policy: tt.policy}, a, peer.Server{Addr: "b", MaxFails: tt.before})
			for _, addr := range []string{"a", "b", "b"} {
				require.NoError(t, u.Free(u.hold(addr), peer.Failed))
			}
			require.Equal(t, tt.outThen, u.Snapshot().Peers[1].Out)
			u.update(a, peer.Server{Addr: "b", MaxFails: tt.after})
			require.Equal(t, tt.outNow, u.Snapshot().Peers[1].Out)
		})
	}
}

// What a Window remembers outlives a change of anything but max_fails.
func TestUpdateWithinAWindow(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Window: time.Minute}}, peer.Server{Addr: "a", MaxFails: 3}, peer.Server{Addr: "b"})
	for i := range 3 {
		require.False(t, u.Snapshot().Peers[0].Out)
		u.update(peer.Server{Addr: "a", MaxFails: 3, Weight: 2 + i}, peer.Server{Addr: "b"})
		require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	}
	require.True(t, u.Snapshot().Peers[0].Out)
}

// A debt stays what it is where others come, shrinks where they go, and is forgotten by a
// peer that goes to the other group: there it would mean something else.
func TestUpdateOfCurrentWeights(t *testing.T) {
	a, b, c := peer.Server{Addr: "a", Weight: 100}, peer.Server{Addr: "b", Weight: 60}, peer.Server{Addr: "c", Weight: 40}
	down, backup := b, a
	down.Down, backup.Backup = true, true
	for _, tt := range []struct {
		name  string
		after []peer.Server
		want  string // cw
	}{
		{"the same", []peer.Server{a, b, c}, "a -100, b 60, c 40"},
		{"another comes", []peer.Server{a, b, c, {Addr: "d", Weight: 1000}}, "a -100, b 60, c 40, d 0"},
		{"one goes", []peer.Server{a, c}, "a -70, c 28"},
		{"one is down", []peer.Server{a, down, c}, "a -70, b 42, c 28"},
		{"one goes and one comes", []peer.Server{a, c, {Addr: "d", Weight: 60}}, "a -100, c 40, d 0"},
		{"one is a backup now", []peer.Server{b, c, backup}, "b 30, c 20, a 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := newUpdatable(t, nil, peer.Options{}, a, b, c)
			require.Equal(t, "a", u.picks(1))
			u.update(tt.after...)
			var got []string
			for _, s := range states(u.Upstream) {
				got = append(got, fmt.Sprint(s.addr, " ", s.CurrentWeight))
			}
			require.Equal(t, tt.want, strings.Join(got, ", "))
		})
	}
}

// What a change of weight makes of a debt may be more than a number holds; the debt stays then.
func TestUpdateOfADebtThatIsTooGreat(t *testing.T) {
	great := []peer.Server{{Addr: "b", Weight: math.MaxInt32}, {Addr: "c", Weight: math.MaxInt32}, {Addr: "d", Weight: math.MaxInt32}}
	u := newUpdatable(t, sticky.Over(nil), peer.Options{}, append(great, peer.Server{Addr: "a", Route: "ra"})...)
	r := &peer.Request{Hint: "ra"}
	require.NoError(t, u.Begin(r))
	require.Equal(t, "a", u.get(r))
	const debt int64 = -3 * math.MaxInt32
	require.Equal(t, debt, u.State(peer.Primary, 3).CurrentWeight)
	u.update(append(great, peer.Server{Addr: "a", Route: "ra", Weight: math.MaxInt32})...)
	require.Equal(t, debt, u.State(peer.Primary, 3).CurrentWeight)
}

// A try that was given back counts beside those that MaxTries allow, also in a new set.
func TestGivenBackTryOverAnUpdate(t *testing.T) {
	a, b, c := peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "c"}
	u := newUpdatable(t, nil, peer.Options{}, a, b, c)
	r := &peer.Request{MaxTries: 2}
	require.NoError(t, u.Begin(r))
	u.get(r)
	u.Internal(glue.Key{}).GiveBackTry(r)
	require.NoError(t, u.Free(r, peer.Failed))
	u.update(a, b, peer.Server{Addr: "c", Weight: 2})
	u.get(r)
	require.Equal(t, 2, r.Tries())
}

// A peer on its way back comes no faster for being picked after an update.
func TestUpdateDuringRecovery(t *testing.T) {
	a, b := peer.Server{Addr: "a", Weight: 100, MaxFails: 2}, peer.Server{Addr: "b"}
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Recovery: 100 * time.Second}}, a, b)
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	u.now += 20 * time.Second
	u.update(a, b, peer.Server{Addr: "c"})
	u.picks(5)
	require.EqualValues(t, 60, u.State(peer.Primary, 0).EffectiveWeight)
}

// A weight that falls below what a peer on its way back has already is whole.
func TestUpdateOfAPeerOnARamp(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Recovery: time.Hour}},
		peer.Server{Addr: "a", Weight: 100, MaxFails: 2}, peer.Server{Addr: "b"})
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	u.update(peer.Server{Addr: "a", MaxFails: 2}, peer.Server{Addr: "b"})
	require.InDelta(t, 500, strings.Count(u.picks(1000), "a"), 2)
	require.EqualValues(t, 1, u.State(peer.Primary, 0).EffectiveWeight)
}
