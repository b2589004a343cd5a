package leasttime_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
)

// told is a method whose peers begin with averages, in ms, 0 for unknown; and
// which gives a request the peer whose index is its hint.
type told struct {
	leasttime.Method
	averages []int64
}

func (m told) Build(set *peer.Set) (peer.Selector, error) {
	s, err := m.Method.Build(set)
	begun, pick := false, s.Pick
	s.Pick = func(g *peer.Group, r *peer.Request, now peer.Now) int {
		if !begun {
			begun = true
			for i, avg := range m.averages {
				g.Times(i).Header, g.Times(i).Response = avg, avg
			}
		}
		if i, err := strconv.Atoi(r.Hint); err == nil {
			return i
		}
		return pick(g, r, now)
	}
	return s, err
}

// at binds a request to peer i.
func at(i int) func(*peer.Request) {
	return func(r *peer.Request) { r.Hint = strconv.Itoa(i) }
}

// lab has peers of weights and averages which were all asked just now, and hold
// requests.
func lab(t testing.TB, m leasttime.Method, weights []int, averages []int64, conns []int) *machine.Trial {
	servers := make([]peer.Server, len(weights))
	for i, w := range weights {
		servers[i] = peer.Server{Addr: string(rune('a' + i)), Weight: w}
	}
	l := machine.NewTrialOf(t, told{m, averages}, servers)
	for i := range servers {
		l.One(peer.OK, at(i))
	}
	for i, n := range conns {
		for range n {
			l.Begin(at(i)).Get()
		}
	}
	return l
}

// TestTrueTies has three peers that would have one request for each unit of
// weight with the next one: they are tied, and stay so.
func TestTrueTies(t *testing.T) {
	tests := []struct {
		name   string
		method leasttime.Method
		want   map[string]int
	}{
		{"nginx", leasttime.Method{}, map[string]int{"a": 10, "b": 40, "c": 10}},
		{"remedied", leasttime.Method{TrueTies: true}, map[string]int{"a": 10, "b": 20, "c": 30}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := lab(t, test.method, []int{1, 2, 3}, nil, []int{0, 1, 2})
			require.Equal(t, test.want, l.Share(60))
		})
	}
}

// TestTrueTiesShareByWeight: peers that stay tied share exactly by weight.
func TestTrueTiesShareByWeight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 9), 2, 8).Draw(rt, "weights")
		k := rapid.IntRange(1, 3).Draw(rt, "requests per weight")
		conns, total, want := make([]int, len(weights)), 0, map[string]int{}
		for i, w := range weights {
			conns[i] = k*w - 1
			total += w
			want[string(rune('a'+i))] = w
		}
		l := lab(t, leasttime.Method{TrueTies: true}, weights, nil, conns)
		require.Equal(rt, want, l.Share(total))
	})
}

// TestTrueTiesTakeTheLeast: nobody with a greater eta / weight is ever taken,
// and nobody that is tied for the least is left out for long.
func TestTrueTiesTakeTheLeast(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(rt, "peers")
		weights := rapid.SliceOfN(rapid.IntRange(1, 4), n, n).Draw(rt, "weights")
		conns := rapid.SliceOfN(rapid.IntRange(0, 8), n, n).Draw(rt, "conns")
		averages := rapid.SliceOfN(rapid.Int64Range(0, 100), n, n).Draw(rt, "averages")
		eta := func(i int) int64 { return (averages[i]/20*20 + 20) * int64(1+conns[i]) }
		best := 0
		for i := range n {
			if eta(i)*int64(weights[best]) < eta(best)*int64(weights[i]) {
				best = i
			}
		}
		total, want := 0, map[string]int{}
		for i, w := range weights {
			if eta(i)*int64(weights[best]) == eta(best)*int64(w) {
				want[string(rune('a'+i))] = w
				total += w
			}
		}
		l := lab(t, leasttime.Method{TrueTies: true}, weights, averages, conns)
		require.Equal(rt, want, l.Share(total))
	})
}

// TestFullDecay has a, which takes 30 ms and was just asked, and b, which took 2 s
// and has been idle. At the default timeout b's time is halved every 11 s.
func TestFullDecay(t *testing.T) {
	tests := []struct {
		idle            time.Duration
		nginx, remedied string
	}{
		{0, "a", "a"},
		{65 * time.Second, "a", "a"},
		{77 * time.Second, "b", "b"},
		{703 * time.Second, "b", "b"},
		{704 * time.Second, "a", "b"},
		{769 * time.Second, "a", "b"},
		{781 * time.Second, "b", "b"},
		{2 * 704 * time.Second, "a", "b"},
		{24 * time.Hour, "b", "b"},
	}
	for _, test := range tests {
		t.Run(test.idle.String(), func(t *testing.T) {
			for _, full := range []bool{false, true} {
				l := lab(t, leasttime.Method{FullDecay: full}, []int{1, 1}, []int64{30, 2000}, nil)
				l.Advance(test.idle)
				l.One(peer.OK, at(0))
				want := test.nginx
				if full {
					want = test.remedied
				}
				require.Equal(t, want, l.Picks(1), "FullDecay: %v", full)
			}
		})
	}
}

// TestFullDecayAlwaysGivesAChance: a peer that was idle for twenty halvings, or for
// however much longer, is asked before one that takes more than 20 ms.
func TestFullDecayAlwaysGivesAChance(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		timeout := rapid.Int64Range(1, 100).Draw(rt, "fail timeout")
		servers := machine.Servers(t, "a", "b")
		servers[1].FailTimeout = time.Duration(timeout) * time.Second
		averages := []int64{rapid.Int64Range(20, 5000).Draw(rt, "a's time"),
			rapid.Int64Range(1, 1e6).Draw(rt, "b's time")}
		l := machine.NewTrialOf(t, told{leasttime.Method{FullDecay: true}, averages}, servers)
		l.One(peer.OK, at(1))
		l.Advance(time.Duration(rapid.Int64Range(20*(timeout+1), 1e8).Draw(rt, "idle")) * time.Second)
		l.One(peer.OK, at(0))
		require.Equal(rt, "b", l.Picks(1))
	})
}

// TestFairStart has three peers that take 100 ms, and d, of which nothing is known.
func TestFairStart(t *testing.T) {
	tests := []struct {
		name   string
		method leasttime.Method
		burst  map[string]int // of 40 requests at one time
		failed int            // of 1000 requests that d breaks off, with max_fails=0
	}{
		{"nginx", leasttime.Method{}, map[string]int{"a": 4, "b": 4, "c": 4, "d": 28}, 1000},
		{"remedied", leasttime.Method{FairStart: true}, map[string]int{"a": 10, "b": 10, "c": 10, "d": 10}, 250},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fresh := func() *machine.Trial {
				l := machine.NewTrial(t, told{test.method, []int64{100, 100, 100}}, "a", "b", "c", "d max_fails=0")
				for i := range 3 {
					l.One(peer.OK, at(i))
				}
				return l
			}
			l, burst := fresh(), map[string]int{}
			for range 40 {
				_, name := l.Hold()
				burst[name]++
			}
			require.Equal(t, test.burst, burst)

			l, failed := fresh(), 0
			for range 1000 {
				if r, name := l.Hold(); name == "d" {
					failed++
					r.Free(peer.Failed)
				} else {
					r.Free(peer.OK)
				}
			}
			require.Equal(t, test.failed, failed)
		})
	}
}

// TestFairStartIsTheMean: peers without data are picked just as if they had the
// mean of the others' averages.
func TestFairStartIsTheMean(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(rt, "peers")
		weights := rapid.SliceOfN(rapid.IntRange(1, 5), n, n).Draw(rt, "weights")
		averages := rapid.SliceOfN(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 5000)), n, n).Draw(rt, "averages")
		sum, known := int64(0), int64(0)
		for _, avg := range averages {
			if avg > 0 {
				sum += avg
				known++
			}
		}
		filled := make([]int64, n)
		for i, avg := range averages {
			if filled[i] = avg; avg == 0 && known > 0 {
				filled[i] = sum / known
			}
		}
		m := leasttime.Method{FairStart: true, FullDecay: true, TrueTies: rapid.Bool().Draw(rt, "true ties")}
		got := lab(t, m, weights, averages, nil)
		m.FairStart = false
		want := lab(t, m, weights, filled, nil)
		for range 60 {
			_, wanted := want.Hold()
			_, name := got.Hold()
			require.Equal(rt, wanted, name)
		}
	})
}

// TestFairStartAsksEveryone: peers of equal weight and time, and such without
// data, asked or not, hold equally many requests of any burst.
func TestFairStartAsksEveryone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(rt, "peers")
		averages, servers := make([]int64, n), make([]peer.Server, n)
		time := rapid.Int64Range(1, 5000).Draw(rt, "time")
		for i := range servers {
			servers[i].Addr = fmt.Sprint(i)
			averages[i] = time * int64(rapid.IntRange(0, 1).Draw(rt, "known"))
		}
		l := machine.NewTrialOf(t, told{leasttime.Method{FairStart: true}, averages}, servers)
		for i, avg := range averages {
			if avg > 0 || rapid.Bool().Draw(rt, "asked") {
				l.One(peer.Abandoned, at(i))
			}
		}
		for range rapid.IntRange(0, 60).Draw(rt, "burst") {
			l.Hold()
		}
		least, most := l.States()[0].Conns, int64(0)
		for _, s := range l.States() {
			least, most = min(least, s.Conns), max(most, s.Conns)
		}
		require.LessOrEqual(rt, most-least, int64(1))
	})
}

// TestFairStartKeepsZero: a peer that answers within the same millisecond is
// known to be fast, not unknown.
func TestFairStartKeepsZero(t *testing.T) {
	tests := []struct {
		mode   leasttime.Mode
		stream bool
	}{
		{leasttime.Header, false}, {leasttime.LastByte, false},
		{leasttime.Connect, true}, {leasttime.FirstByte, true}, {leasttime.LastByte, true},
	}
	for _, test := range tests {
		for _, inflight := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v stream=%v inflight=%v", test.mode, test.stream, inflight), func(t *testing.T) {
				l := machine.NewTrial(t, told{leasttime.Method{Mode: test.mode, Inflight: inflight, FairStart: true}, nil}, "a", "b")
				for i, takes := range []time.Duration{0, 100 * time.Millisecond} {
					r := l.Begin(func(r *peer.Request) { at(i)(r); r.Stream = test.stream })
					r.Get()
					l.Advance(takes)
					require.NoError(t, l.Connected(&r.Request))
					require.NoError(t, l.FirstByte(&r.Request))
					r.Header()
					r.Free(peer.OK)
				}
				require.Equal(t, "a a a a a a a a a a", l.Picks(10))
			})
		}
	}
}

func TestCuresAllocateNothing(t *testing.T) {
	l := machine.NewTrial(t, leasttime.Method{TrueTies: true, FullDecay: true, FairStart: true, Inflight: true}, "a", "b", "c")
	var r peer.Request
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if l.Upstream.Begin(&r) != nil || l.Get(&r) != nil || l.Free(&r, peer.OK) != nil {
			t.Fatal("refused")
		}
	}))
}

// TestCuresEnd: where no peer can be had the answer is Busy, and each one that
// can be is reached, once.
func TestCuresEnd(t *testing.T) {
	all := leasttime.Method{TrueTies: true, FullDecay: true, FairStart: true}
	l := machine.NewTrial(t, all, "a weight=3", "b", "c down", "d backup", "e backup weight=2")
	require.ElementsMatch(t, []string{"a", "b"}, []string{l.One(peer.Failed, nil), l.One(peer.Failed, nil)})
	require.Equal(t, "e d BUSY", l.Through(peer.Failed, nil))
	require.Equal(t, machine.Busy, l.One(peer.OK, nil))
}

func BenchmarkCures(b *testing.B) {
	machine.BenchGetFree(b, leasttime.Method{TrueTies: true, FullDecay: true, FairStart: true}, 3, 10, 100)
}
