package leastconn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

// The peer with the fewest requests for its weight is next.
func TestLeastLoaded(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []string
		held    map[string]int
		want    string
	}{
		{"the idle one", []string{"a", "b", "c"}, map[string]int{"a": 1, "c": 2}, "b"},
		{"the one with fewer", []string{"a", "b"}, map[string]int{"a": 3, "b": 2}, "b"},
		{"20 at weight 10 are less than 3 at weight 1", []string{"a weight=10", "b"}, map[string]int{"a": 20, "b": 3}, "a"},
		{"21 at weight 7 are less than 31 at weight 10", []string{"b weight=10", "a weight=7"}, map[string]int{"a": 21, "b": 31}, "a"},
		{"but not a full one", []string{"a", "b max_conns=1"}, map[string]int{"a": 3, "b": 1}, "a"},
		{"nor one that is down", []string{"a", "b down"}, map[string]int{"a": 3}, "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, leastconn.New(), test.servers...)
			for addr, n := range test.held {
				for range n {
					lb.HoldOn(addr, nil)
				}
			}
			require.Equal(t, test.want, lb.Picks(1))
		})
	}
}

// Idle peers are all tied, and the trunk chooses among them as round robin
// does: neither the first nor the last is favoured.
func TestIdlePeersShareByWeight(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []string
		picks   int
		want    string
	}{
		{"equal weights", []string{"a", "b", "c"}, 6, "a b c a b c"},
		{"5, 1, 1", []string{"a weight=5", "b", "c"}, 7, "a a b a c a a"},
		{"1, 5, 1 with the first down", []string{"a down", "b weight=5", "c"}, 12, "b b b c b b b b b c b b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, leastconn.New(), test.servers...)
			require.Equal(t, test.want, lb.Picks(test.picks))
		})
	}
	t.Run("1, 5, 1 with the first failed out", func(t *testing.T) {
		lb := machine.NewTrial(t, leastconn.New(), "a", "b weight=5", "c")
		lb.HoldOn("a", nil).Free(peer.Failed)
		require.Equal(t, map[string]int{"b": 500, "c": 100}, lb.Share(600))
	})
}

// Only the peers that are tied take part in the trunk; the others are not touched.
func TestOnlyTheTiedTakePart(t *testing.T) {
	lb := machine.NewTrial(t, leastconn.New(), "a", "b", "c")
	lb.HoldOn("b", nil) // goes to a, which costs a something, and then to b
	before := lb.Of("b")
	require.Equal(t, "c c a c a c a", lb.Picks(7))
	require.Equal(t, before, lb.Of("b"))
}

// Without a tie the trunk does not run: no weight moves, and what a failure has
// taken does not come back.
func TestWithoutATieNoWeightMoves(t *testing.T) {
	lb := machine.NewTrial(t, leastconn.New(), "a weight=10 max_fails=2", "b")
	lb.HoldOn("b", nil) // b is not idle any more
	lb.HoldOn("a", nil).Free(peer.Failed)
	cw, ew := lb.CurrentWeights(), lb.EffectiveWeights()
	require.EqualValues(t, 5, ew[0])

	require.Equal(t, "a a a a a a", lb.Picks(6))
	require.Equal(t, cw, lb.CurrentWeights())
	require.Equal(t, ew, lb.EffectiveWeights())
}

// The backups are asked by least_conn, too.
func TestBackup(t *testing.T) {
	lb := machine.NewTrial(t, leastconn.New(), "a", "b backup", "c backup weight=2")
	require.Equal(t, "a", lb.One(peer.Failed, nil))
	r, name := lb.Hold()
	require.Equal(t, "c", name, "by the trunk: both are idle")
	_, name = lb.Hold()
	require.Equal(t, "b", name, "0/1 is less than 1/2")
	_, name = lb.Hold()
	require.Equal(t, "c", name, "1/2 is less than 1/1")
	r.Free(peer.Failed)
	require.Equal(t, "b", r.Get(), "c was tried")
	lb.Advance(11 * time.Second)
	require.Equal(t, "a", lb.Picks(1), "a can be had again")
}

// nginx multiplies unsigned: 20 requests * 461168601842738791 is more than 2^63.
func TestGreatWeights(t *testing.T) {
	lb := machine.NewTrial(t, leastconn.New(), "a weight=461168601842738791", "b")
	for range 20 {
		lb.HoldOn("b", nil)
	}
	for range 21 {
		lb.HoldOn("a", nil)
	}
	require.Equal(t, "a", lb.One(peer.Next, nil))
}
