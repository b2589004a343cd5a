package peer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/roundrobin"
)

// bound binds each request to the peer whose sid is its Hint, as sticky does,
// over another method.
type bound struct{ peer.Method }

func (m bound) Build(set *peer.Set) (peer.Selector, error) {
	s, err := m.Method.Build(set)
	s.Bind = func(g *peer.Group, r *peer.Request, now peer.Now) int {
		for i := range g.Len() {
			if r.Hint != "" && set.SID(g.Index(), i) == r.Hint {
				if g.EligibleDraining(i, r, now) {
					return i
				}
				break
			}
		}
		return peer.None
	}
	return s, err
}

func hint(sid string) func(*peer.Request) {
	return func(r *peer.Request) { r.Hint, r.Key = sid, "/" }
}

// Under round robin the hinted peer is taken in place of the winner, and pays
// for all; when it is in debt by all that the others weigh, the valve lets it be
// taken free of charge.
func TestHintedPeerPays(t *testing.T) {
	lb := machine.NewTrial(t, bound{roundrobin.New()}, "a route=a", "b route=b", "c route=c")
	for i, want := range [][]int64{
		{1, 1, -2}, // c pays 3 of the 3 that all have gained
		{1, 1, -2}, // -2 is the floor: nothing moves
		{1, 1, -2},
	} {
		require.Equal(t, "c", lb.One(peer.OK, hint("c")))
		require.Equal(t, want, lb.CurrentWeights(), "after pick %d", i)
	}
	require.Equal(t, "a b a", lb.Picks(3), "the others catch up")
}

// The other methods take the hinted peer at once, and no weight moves.
func TestHintedPeerOfOtherMethods(t *testing.T) {
	for _, m := range []peer.Method{leastconn.New(), hash.New("$uri"), hash.NewConsistent("$uri")} {
		lb := machine.NewTrial(t, bound{m}, "a route=a", "b route=b", "c route=c")
		for range 4 {
			require.Equal(t, "c", lb.One(peer.OK, hint("c")))
		}
		require.Equal(t, []int64{0, 0, 0}, lb.CurrentWeights())
	}
}

// A hint that cannot be had is void.
func TestVoidHints(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []string
		hint    string
	}{
		{"nobody's", []string{"a", "b", "c"}, "nobody"},
		{"of a down peer", []string{"a", "b", "c", "d down route=d"}, "d"},
		{"of a backup, while a primary can be had", []string{"a", "b", "c", "d backup route=d"}, "d"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, bound{roundrobin.New()}, test.servers...)
			for _, want := range []string{"a", "b", "c", "a"} {
				require.Equal(t, want, lb.One(peer.OK, hint(test.hint)))
			}
		})
	}
}

// A draining peer serves those who are bound to it, and nobody else.
func TestDrain(t *testing.T) {
	lb := machine.NewTrial(t, bound{roundrobin.New()}, "a", "b", "d drain route=d")
	require.Equal(t, "a b a b", lb.Picks(4))
	require.Equal(t, "d", lb.One(peer.OK, hint("d")))
	require.Equal(t, "d", lb.One(peer.OK, hint("d")))
}

// Quirk Q5: a draining peer is not counted in the tries. So a request that is
// bound to it, and fails there, has too few left: with one other peer none at all,
// though that one has not been asked.
func TestQ5(t *testing.T) {
	lb := machine.NewTrial(t, bound{roundrobin.New()}, "a", "d drain route=d")
	r := lb.Begin(hint("d"))
	require.Equal(t, 1, r.Tries())
	require.Equal(t, "d", r.Get())
	r.Free(peer.Failed)
	require.Zero(t, r.Tries(), "whoever goes by tries ends here, with 502")
	require.Equal(t, "a", r.Get(), "though a could be had")
}

// Hints need no allocation.
func TestHintsDoNotAllocate(t *testing.T) {
	lb := machine.NewTrial(t, bound{roundrobin.New()}, "a route=a", "b route=b", "c route=c")
	r := peer.Request{Hint: "b"}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		must(t, lb.Upstream.Begin(&r))
		must(t, lb.Upstream.Get(&r))
		must(t, lb.Upstream.Free(&r, peer.OK))
	}))
}
