package roundrobin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/roundrobin"
)

// Weights spread a peer's turns over the round: weight 5 is not five in a row.
func TestTheOrderIsSmooth(t *testing.T) {
	tests := []struct {
		name    string
		servers []string
		want    string // one whole round
	}{
		{"equal weights take turns", []string{"a", "b", "c"}, "a b c"},
		{"5, 1, 1", []string{"a weight=5", "b", "c"}, "a a b a c a a"},
		{"3, 2, 1", []string{"a weight=3", "b weight=2", "c"}, "a b a c b a"},
		{"1, 2, 3", []string{"a", "b weight=2", "c weight=3"}, "c b a c b c"},
		{"2, 2 is 1, 1 twice", []string{"a weight=2", "b weight=2"}, "a b a b"},
		{"one peer", []string{"a weight=7"}, "a a a"},
		{"down peers are passed over", []string{"a down", "b", "c"}, "b c b c"},
		{"draining peers too", []string{"a", "b drain", "c"}, "a c a c"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, roundrobin.New(), test.servers...)
			n := len(strings.Fields(test.want))
			for range 3 {
				require.Equal(t, test.want, lb.Picks(n))
				for _, cw := range lb.CurrentWeights() {
					require.Zero(t, cw, "every current weight is 0 after a round")
				}
			}
		})
	}
}

// The current weights on the way through 5, 1, 1.
func TestCurrentWeightsOfARound(t *testing.T) {
	lb := machine.NewTrial(t, roundrobin.New(), "a weight=5", "b", "c")
	for i, want := range []struct {
		pick    string
		a, b, c int64
	}{
		{"a", -2, 1, 1},
		{"a", -4, 2, 2},
		{"b", 1, -4, 3},
		{"a", -1, -3, 4},
		{"c", 4, -2, -2},
		{"a", 2, -1, -1},
		{"a", 0, 0, 0},
	} {
		require.Equal(t, want.pick, lb.Picks(1), "pick %d", i)
		require.Equal(t, []int64{want.a, want.b, want.c}, lb.CurrentWeights(), "after pick %d", i)
	}
}

// From zeros, a round is as long as the sum of the weights divided by their
// greatest common divisor. In it every peer has its exact share, and at its end, and not
// before, all current weights are 0 again.
func TestPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 40), 2, 12).Draw(t, "weights")
		servers := make([]peer.Server, len(weights))
		sum, divisor := 0, 0
		for i, w := range weights {
			servers[i] = peer.Server{Addr: fmt.Sprint(i), Weight: w}
			sum += w
			divisor = gcd(divisor, w)
		}
		u, err := peer.New(servers, roundrobin.New(), nil)
		require.NoError(t, err)

		got := make([]int, len(weights))
		for n := range sum / divisor {
			got[pickOK(t, u)]++
			require.Equal(t, n+1 == sum/divisor, allZero(u), "all current weights 0 after %d picks", n+1)
		}
		for i, w := range weights {
			require.Equal(t, w/divisor, got[i], "picks of peer %d", i)
		}
	})
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func pickOK(t require.TestingT, u *peer.Upstream) int {
	var r peer.Request
	require.NoError(t, u.Begin(&r))
	require.NoError(t, u.Get(&r))
	p, ok := u.Peer(&r)
	require.True(t, ok)
	require.NoError(t, u.Free(&r, peer.OK))
	return p.Index
}

func allZero(u *peer.Upstream) bool {
	for i := range u.Set().Len(peer.Primary) {
		if u.State(peer.Primary, i).CurrentWeight != 0 {
			return false
		}
	}
	return true
}

// The story of the night: a has weight 10 and b weight 1. At night a fails
// twice, in turn, and is taken out. A day later all is well, but a has still to
// earn its weight back, one for each pick, and b keeps about two requests
// too many for ever.
func TestTheNight(t *testing.T) {
	night := func(t *testing.T) *machine.Trial {
		lb := machine.NewTrial(t, roundrobin.New(), "a weight=10 max_fails=2", "b")
		ew := func() int64 { return lb.Of("a").EffectiveWeight }
		require.Equal(t, int64(10), ew())

		r := lb.Begin(nil)
		require.Equal(t, "a", r.Get())
		r.Free(peer.Failed)
		require.Equal(t, int64(5), ew(), "a failure takes 10/2")

		r = lb.Begin(nil)
		require.Equal(t, "a", r.Get())
		require.Equal(t, int64(6), ew(), "a pick gives 1 back")
		r.Free(peer.Failed)
		require.Equal(t, int64(1), ew(), "the second failure takes 10/2 again")
		require.Equal(t, int64(2), lb.Of("a").Fails, "and a is out")

		lb.Advance(24 * time.Hour)
		require.Equal(t, int64(1), ew(), "time alone gives nothing back")
		return lb
	}
	for _, morning := range []struct{ picks, a, b int }{
		{11, 8, 3},
		{20, 16, 4},
		{50, 44, 6},
		{100, 89, 11},
		{200, 180, 20},
		{500, 453, 47},
		{1000, 907, 93},
		{5000, 4544, 456},
		{20000, 18180, 1820},
	} {
		t.Run(fmt.Sprintf("the first %d picks of the morning", morning.picks), func(t *testing.T) {
			require.Equal(t, map[string]int{"a": morning.a, "b": morning.b}, night(t).Share(morning.picks))
		})
	}
}

// What a failure takes from the effective weight is w / max_fails in whole
// numbers: nothing at all for small weights.
func TestPenalty(t *testing.T) {
	for _, test := range []struct {
		server string
		takes  int64
	}{
		{"a weight=1 max_fails=1", 1},
		{"a weight=1 max_fails=2", 0},
		{"a weight=1 max_fails=3", 0},
		{"a weight=3 max_fails=5", 0},
		{"a weight=10 max_fails=2", 5},
		{"a weight=10 max_fails=3", 3},
		{"a weight=10 max_fails=0", 0},
	} {
		t.Run(test.server, func(t *testing.T) {
			lb := machine.NewTrial(t, roundrobin.New(), test.server, "b backup")
			before := lb.Of("a").EffectiveWeight
			require.Equal(t, "a", lb.One(peer.Failed, nil))
			require.Equal(t, test.takes, before-lb.Of("a").EffectiveWeight)
		})
	}
}

// Two requests in flight that both fail hit harder than the same two in turn:
// between the two in turn a pick gave one back.
func TestFailuresInFlightAndInTurn(t *testing.T) {
	servers := []string{"a weight=10 max_fails=2", "b"}

	t.Run("in turn", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), servers...)
		require.Equal(t, "a", lb.One(peer.Failed, nil))
		require.Equal(t, "a", lb.One(peer.Failed, nil))
		require.Equal(t, int64(1), lb.Of("a").EffectiveWeight)
	})
	t.Run("in flight", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), servers...)
		first, name := lb.Hold()
		require.Equal(t, "a", name)
		second, name := lb.Hold()
		require.Equal(t, "a", name)
		first.Free(peer.Failed)
		second.Free(peer.Failed)
		require.Equal(t, int64(0), lb.Of("a").EffectiveWeight)
	})
	t.Run("never below zero", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), "a", "b")
		var held []*machine.Try
		for range 6 {
			r, _ := lb.Hold()
			held = append(held, r)
		}
		for _, r := range held {
			r.Free(peer.Failed)
		}
		require.Equal(t, []int64{0, 0}, lb.EffectiveWeights())
	})
}

// A peer that has failed out is out for fail_timeout and the second in which
// that ends, and then for everybody but the one request that finds out how it
// is, the probe. (b is a backup, so that a is chosen whenever it can be.)
func TestFailWindow(t *testing.T) {
	// 11 seconds after the failure of a, with its probe on the way.
	probed := func(t *testing.T) (*machine.Trial, *machine.Try) {
		lb := machine.NewTrial(t, roundrobin.New(), "a fail_timeout=10s", "b backup")
		require.Equal(t, "a", lb.One(peer.Failed, nil))
		for second := range 11 {
			require.Equal(t, "b b b", lb.Picks(3), "%d s after the failure", second)
			lb.Advance(time.Second)
		}
		probe, name := lb.Hold()
		require.Equal(t, "a", name, "the probe")
		return lb, probe
	}
	t.Run("one probe goes out", func(t *testing.T) {
		lb, _ := probed(t)
		require.Equal(t, "b b b b", lb.Picks(4))
	})
	t.Run("the probe fails", func(t *testing.T) {
		lb, probe := probed(t)
		probe.Free(peer.Failed)
		lb.Advance(10 * time.Second)
		require.Equal(t, "b b b", lb.Picks(3), "10 s after the probe")
		lb.Advance(time.Second)
		_, name := lb.Hold()
		require.Equal(t, "a", name, "the next probe")
		require.Equal(t, "b b b", lb.Picks(3))
	})
	t.Run("the probe hangs", func(t *testing.T) {
		lb, _ := probed(t)
		lb.Advance(10 * time.Second)
		require.Equal(t, "b", lb.Picks(1))
		lb.Advance(time.Second)
		_, name := lb.Hold()
		require.Equal(t, "a", name, "one more is let through for each window")
		require.Equal(t, "b b b", lb.Picks(3))
	})
	t.Run("the probe is abandoned", func(t *testing.T) {
		lb, probe := probed(t)
		probe.Free(peer.Abandoned)
		require.Equal(t, "b b b", lb.Picks(3), "nothing has been proved")
	})
	t.Run("the probe succeeds", func(t *testing.T) {
		lb, probe := probed(t)
		probe.Free(peer.OK)
		require.Zero(t, lb.Of("a").Fails)
		require.Equal(t, "a a a", lb.Picks(3))
	})
}

// The clock's fraction of a second does not count: 10.999 s are 10 s.
func TestSecondsAreWhole(t *testing.T) {
	lb := machine.NewTrial(t, roundrobin.New(), "a fail_timeout=10s", "b backup")
	require.Equal(t, "a", lb.One(peer.Failed, nil))
	lb.Advance(10*time.Second + 999*time.Millisecond)
	require.Equal(t, "b", lb.Picks(1))
	lb.Advance(time.Millisecond)
	require.Equal(t, "a", lb.Picks(1))
}

// A success forgets the failures only if the peer was taken more than
// fail_timeout after the last of them.
func TestSuccessForgetsOnlyOldFailures(t *testing.T) {
	for _, test := range []struct {
		name    string
		after   time.Duration
		outcome peer.Outcome
		want    int64
	}{
		{"at once", 0, peer.OK, 1},
		{"at the end of fail_timeout", 10 * time.Second, peer.OK, 1},
		{"a second later", 11 * time.Second, peer.OK, 0},
		{"a second later, by a 404 that goes on", 11 * time.Second, peer.Next, 0},
		{"a second later, but abandoned", 11 * time.Second, peer.Abandoned, 1},
		{"a second later, but failed", 11 * time.Second, peer.Failed, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, roundrobin.New(), "a max_fails=3 fail_timeout=10s", "b backup")
			require.Equal(t, "a", lb.One(peer.Failed, nil))
			lb.Advance(test.after)
			require.Equal(t, "a", lb.One(test.outcome, nil))
			require.Equal(t, test.want, lb.Of("a").Fails)
		})
	}
}

// BUSY changes no peer.
func TestBusyChangesNothing(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []string
	}{
		{"failed out", []string{"a weight=5", "b", "c backup"}},
		{"full", []string{"a max_conns=1 max_fails=0", "b max_conns=1 max_fails=0", "c max_conns=1 max_fails=0 backup"}},
		{"down", []string{"a down", "b drain", "c backup down"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, roundrobin.New(), test.servers...)
			lb.Through(peer.Failed, nil)
			var held []*machine.Try
			for range 3 {
				r, _ := lb.Hold()
				held = append(held, r)
			}
			before := lb.States()
			for range 5 {
				lb.Advance(time.Second)
				r, name := lb.Hold()
				require.Equal(t, machine.Busy, name)
				require.ErrorIs(t, lb.Upstream.Free(&r.Request, peer.OK), peer.ErrNotHeld)
			}
			require.Equal(t, before, lb.States())
			require.Len(t, held, 3)
		})
	}
}

// When all peers are out, nobody is let back in early: their failures stand.
func TestNoResetWhenAllAreDown(t *testing.T) {
	lb := machine.NewTrial(t, roundrobin.New(), "a", "b", "c")
	require.Equal(t, "a b c BUSY", lb.Through(peer.Failed, nil))
	for second := range 11 {
		require.Equal(t, machine.Busy, lb.Picks(1), "%d s later", second)
		require.EqualValues(t, 3, lb.Of("a").Fails+lb.Of("b").Fails+lb.Of("c").Fails)
		lb.Advance(time.Second)
	}
	require.NotEqual(t, machine.Busy, lb.Picks(1), "11 s later they are asked again")
}

// A request that finds no primary peer moves to the backups for good, and what
// it had tried among the primaries is forgotten.
func TestBackup(t *testing.T) {
	t.Run("is asked when no primary can be had", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), "a", "b", "c backup", "d backup weight=2")
		require.Equal(t, "a b d c BUSY", lb.Through(peer.Failed, nil))
		require.Equal(t, "BUSY", lb.Picks(1))
	})
	t.Run("is not asked while a primary can be had", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), "a", "b", "c backup")
		require.Equal(t, "a b a b", lb.Picks(4))
	})
	t.Run("is for good", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), "a max_conns=1", "b backup", "c backup")
		full, name := lb.Hold()
		require.Equal(t, "a", name)
		r := lb.Begin(nil)
		require.Equal(t, "b", r.Get())
		full.Free(peer.OK)
		r.Free(peer.Failed)
		require.Equal(t, "c", r.Get(), "though a is free again")
		require.Equal(t, "a", lb.Picks(1), "as other requests see")
	})
	t.Run("starts with nothing tried", func(t *testing.T) {
		// The primaries that were tried stand at the same places of their list
		// as the backups do in theirs.
		lb := machine.NewTrial(t, roundrobin.New(), "a max_fails=0", "b max_fails=0", "c backup max_fails=0", "d backup max_fails=0")
		require.Equal(t, "a b c d BUSY", lb.Through(peer.Failed, nil))
	})
	t.Run("alone is not single: it can fail", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), "a", "b backup")
		require.Equal(t, "a b BUSY", lb.Through(peer.Failed, nil))
		require.EqualValues(t, 1, lb.Of("b").Fails)
	})
}

// A single peer is never ejected: no failure is counted, no weight moves, and
// there is no retry. Only down and max_conns refuse it.
func TestSinglePeer(t *testing.T) {
	t.Run("never ejected", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), "a weight=3")
		for range 10 {
			r := lb.Begin(nil)
			require.Equal(t, 1, r.Tries())
			require.Equal(t, "a", r.Get())
			require.Equal(t, peer.State{EffectiveWeight: 3, Conns: 1}, lb.Of("a"), "only conns changes")
			r.Free(peer.Failed)
			require.Zero(t, r.Tries(), "no retry")
		}
		require.Equal(t, peer.State{EffectiveWeight: 3}, lb.Of("a"))
	})
	t.Run("down", func(t *testing.T) {
		require.Equal(t, machine.Busy, machine.NewTrial(t, roundrobin.New(), "a down").Picks(1))
	})
	t.Run("full", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), "a max_conns=1")
		r, _ := lb.Hold()
		require.Equal(t, machine.Busy, lb.Picks(1))
		r.Free(peer.Failed)
		require.Equal(t, "a", lb.Picks(1))
	})
	t.Run("beside one that is down it is not single", func(t *testing.T) {
		lb := machine.NewTrial(t, roundrobin.New(), "a", "b down")
		require.Equal(t, "a BUSY", lb.Through(peer.Failed, nil))
	})
}

// tries counts the peers that are neither down nor draining, in both groups;
// next_upstream_tries lowers it, and never raises it.
func TestTries(t *testing.T) {
	servers := []string{"a", "b", "c down", "d drain", "e backup", "f backup down"}
	for _, test := range []struct{ most, want int }{{0, 3}, {1, 1}, {2, 2}, {3, 3}, {9, 3}} {
		t.Run(fmt.Sprintf("next_upstream_tries %d", test.most), func(t *testing.T) {
			lb := machine.NewTrial(t, roundrobin.New(), servers...)
			r := lb.Begin(func(r *peer.Request) { r.MaxTries = test.most })
			require.Equal(t, test.want, r.Tries())
			for attempt := 1; attempt <= 3; attempt++ {
				before := r.Tries()
				require.NotEqual(t, machine.Busy, r.Get())
				require.Equal(t, before, r.Tries(), "a get costs no try")
				r.Free(peer.Failed)
				require.Equal(t, max(0, test.want-attempt), r.Tries(), "a free costs one, if there is one")
			}
		})
	}
}

// A full peer is passed over, untouched, until a request leaves it.
func TestMaxConns(t *testing.T) {
	lb := machine.NewTrial(t, roundrobin.New(), "a max_conns=2 weight=3", "b")
	first, name := lb.Hold()
	require.Equal(t, "a", name)
	_, name = lb.Hold()
	require.Equal(t, "a", name)
	before := lb.Of("a")
	require.Equal(t, "b b b", lb.Picks(3))
	require.Equal(t, before, lb.Of("a"), "passed over is not touched")
	first.Free(peer.OK)
	require.Contains(t, lb.Picks(2), "a")
}
