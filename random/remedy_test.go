package random_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

var keepWeights = random.Method{Two: true, KeepWeights: true}

// TestKeepWeights has peers of weights 9 and 1 and keeps a number of requests
// going: whenever a new one has got its peer, any one of the others ends. The
// figures are a's share of 20,000 requests in per cent; 90 would be right.
func TestKeepWeights(t *testing.T) {
	tests := []struct {
		going           int
		nginx, remedied float64
	}{
		{0, 20, 90},
		{1, 52, 91},
		{3, 75, 92},
		{10, 82, 88},
		{30, 87, 89},
		{100, 89, 90},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.going, " going"), func(t *testing.T) {
			require.InDelta(t, test.nginx, share(t, random.NewTwo(), test.going), 1)
			require.InDelta(t, test.remedied, share(t, keepWeights, test.going), 1)
		})
	}
}

func share(t *testing.T, m random.Method, going int) float64 {
	const requests = 20_000
	l := machine.NewTrial(t, m, "a weight=9", "b")
	ends := rand.New(rand.NewPCG(3, 4))
	held, a := make([]*machine.Try, going+1), 0
	for i := range going {
		held[i], _ = l.Hold()
	}
	for range requests {
		r, name := l.Hold()
		if name == "a" {
			a++
		}
		held[going] = r
		i := ends.IntN(max(going, 1))
		held[i].Free(peer.OK)
		held[i] = held[going]
	}
	return float64(a) * 100 / requests
}

// TestKeepWeightsSharesByWeight: idle, all peers that can be had get what their
// weights say, within chance, and the others nothing.
func TestKeepWeightsSharesByWeight(t *testing.T) {
	const requests = 3000
	rapid.Check(t, func(rt *rapid.T) {
		servers := make([]peer.Server, rapid.IntRange(2, 8).Draw(rt, "peers"))
		total := 0
		for i := range servers {
			servers[i] = peer.Server{Addr: fmt.Sprint(i), Weight: rapid.IntRange(1, 1000).Draw(rt, "weight")}
			// A single live peer of little weight would be round robin's.
			if servers[i].Down = i > 1 && rapid.Bool().Draw(rt, "down"); !servers[i].Down {
				total += servers[i].Weight
			}
		}
		got := machine.NewTrialOf(t, keepWeights, servers).Share(requests)
		for _, s := range servers {
			p := float64(s.Weight) / float64(total)
			if s.Down {
				p = 0
			}
			chance := 6*math.Sqrt(requests*p*(1-p)) + 5*p
			require.InDelta(rt, requests*p, got[s.Addr], math.Ceil(chance), "peer %s", s.Addr)
		}
	})
}

// heard is a source that remembers what it gave.
type heard struct {
	rand.Source
	draws []uint64
}

func (h *heard) Uint64() uint64 {
	h.draws = append(h.draws, h.Source.Uint64())
	return h.draws[len(h.draws)-1]
}

// TestKeepWeightsRelieves: under any load, the first draw that can be had is
// taken, or a second one that has less load for its weight, without this
// request and with it.
func TestKeepWeightsRelieves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 9), 2, 8).Draw(rt, "weights")
		servers, total := make([]peer.Server, len(weights)), 0
		for i, w := range weights {
			servers[i] = peer.Server{Addr: fmt.Sprint(i), Weight: w}
			total += w
		}
		source := &heard{Source: rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)}
		u, err := peer.New(servers, keepWeights, &peer.Options{Source: source})
		require.NoError(rt, err)
		drawn := func(n int) int {
			x := int(source.draws[n] >> 33 % uint64(total))
			i := 0
			for ; x >= weights[i]; i++ {
				x -= weights[i]
			}
			return i
		}
		conns := make([]int, len(weights))
		for range 100 {
			source.draws = nil
			r := &peer.Request{}
			require.NoError(rt, u.Begin(r))
			require.NoError(rt, u.Get(r))
			p, _ := u.Peer(r)
			first, got := drawn(0), p.Index
			if got != first {
				require.Equal(rt, drawn(len(source.draws)-1), got)
				require.Less(rt, conns[got]*weights[first], conns[first]*weights[got])
				require.Less(rt, (conns[got]+1)*weights[first], (conns[first]+1)*weights[got])
			}
			if conns[got]++; rapid.IntRange(0, 2).Draw(rt, "ends") == 0 {
				require.NoError(rt, u.Free(r, peer.OK))
				conns[got]--
			}
		}
	})
}

// TestKeepWeightsReachesAll: a request that goes on and on gets every peer once,
// and then no more; also one that nearly all draws miss.
func TestKeepWeightsReachesAll(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		servers := make([]peer.Server, rapid.IntRange(2, 40).Draw(rt, "peers"))
		live := map[string]bool{}
		for i := range servers {
			s := &servers[i]
			s.Addr, s.Weight = fmt.Sprint(i), rapid.SampledFrom([]int{1, 2, 1_000_000}).Draw(rt, "weight")
			s.Down = rapid.Bool().Draw(rt, "down")
			s.Backup = i > 0 && rapid.Bool().Draw(rt, "backup")
			if !s.Down {
				live[s.Addr] = true
			}
		}
		r := machine.NewTrialOf(t, keepWeights, servers).Begin(nil)
		for name := r.Get(); name != machine.Busy; name = r.Get() {
			require.True(rt, live[name], "%s is down or had its turn", name)
			delete(live, name)
			r.Free(peer.Failed)
		}
		require.Empty(rt, live)
	})
}

func TestKeepWeightsIsForTwo(t *testing.T) {
	_, err := peer.New(machine.Servers(t, "a", "b"), random.Method{KeepWeights: true}, nil)
	require.EqualError(t, err, "trunk: random.Method.KeepWeights: is for Two; plain random keeps the weights (got true)")
}

func TestKeepWeightsAllocatesNothing(t *testing.T) {
	l := machine.NewTrial(t, keepWeights, "a weight=9", "b", "c")
	var r peer.Request
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if l.Upstream.Begin(&r) != nil || l.Get(&r) != nil || l.Free(&r, peer.OK) != nil {
			t.Fatal("refused")
		}
	}))
}

// A Decision says whether there was a second peer to compare with.
func TestRuleOfTwo(t *testing.T) {
	for _, m := range []random.Method{{Two: true}, {Two: true, KeepWeights: true}} {
		for _, tc := range []struct {
			down bool // b is
			want peer.Rule
		}{{false, peer.LessOfTwo}, {true, map[bool]peer.Rule{false: peer.GreatestWeight, true: peer.Drawn}[m.KeepWeights]}} {
			up, err := peer.New([]peer.Server{{Addr: "a"}, {Addr: "b", Down: tc.down}}, m, &peer.Options{Source: rand.NewPCG(1, 1)})
			require.NoError(t, err)
			r, d := &peer.Request{}, &peer.Decision{}
			require.NoError(t, up.Begin(r))
			require.NoError(t, up.Explain(r, d))
			require.Equal(t, tc.want, d.Rule, "%v, b down %v", m, tc.down)
			require.NoError(t, up.Free(r, peer.OK))
		}
	}
}
