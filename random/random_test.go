package random_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// nginx multiplies unsigned: 20 requests * 461168601842738791 is more than 2^63.
func TestGreatWeights(t *testing.T) {
	lb := machine.NewTrial(t, random.NewTwo(), "a", "b weight=461168601842738791")
	for range 20 {
		lb.HoldOn("a", nil)
	}
	for range 21 {
		lb.HoldOn("b", nil)
	}
	lb.SetDraws(0, 5)
	require.Equal(t, "b", lb.Picks(1))
}

// A draw is taken modulo the total weight, and the peer is the one in whose range
// it falls. A peer that cannot be had is drawn again.
func TestDraw(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []string
		draws   []uint32
		want    string
	}{
		{"the first range", []string{"a weight=3", "b", "c weight=2"}, []uint32{0}, "a"},
		{"its end", []string{"a weight=3", "b", "c weight=2"}, []uint32{2}, "a"},
		{"the second range", []string{"a weight=3", "b", "c weight=2"}, []uint32{3}, "b"},
		{"the third", []string{"a weight=3", "b", "c weight=2"}, []uint32{5}, "c"},
		{"modulo the total weight", []string{"a weight=3", "b", "c weight=2"}, []uint32{6*1000 + 3}, "b"},
		{"the greatest number", []string{"a weight=3", "b", "c weight=2"}, []uint32{math.MaxInt32}, "a"}, // 2^31-1 = 1 mod 6
		{"a down peer keeps its range", []string{"a weight=3 down", "b", "c weight=2"}, []uint32{1, 2, 4}, "c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, random.New(), test.servers...)
			lb.SetDraws(test.draws...)
			require.Equal(t, test.want, lb.Picks(1))
			require.Equal(t, len(test.draws), lb.Drawn())
		})
	}
}

// Over many requests each peer gets its weight's share, and the trunk's weights
// do not move.
func TestShare(t *testing.T) {
	lb := machine.NewTrial(t, random.New(), "a weight=5", "b", "c weight=4")
	got := lb.Share(10_000)
	require.InDelta(t, 5000, got["a"], 200)
	require.InDelta(t, 1000, got["b"], 200)
	require.InDelta(t, 4000, got["c"], 200)
	require.Equal(t, []int64{0, 0, 0}, lb.CurrentWeights())
}

// Same seed, same picks; and without a source each upstream has its own.
func TestSeed(t *testing.T) {
	picks := func(source rand.Source) string {
		u, err := peer.New(machine.Servers(t, "a", "b", "c", "d"), random.New(), &peer.Options{Source: source})
		require.NoError(t, err)
		var names []string
		for range 64 {
			var r peer.Request
			require.NoError(t, u.Begin(&r))
			require.NoError(t, u.Get(&r))
			p, _ := u.Peer(&r)
			names = append(names, p.Server.Addr)
			require.NoError(t, u.Free(&r, peer.OK))
		}
		return strings.Join(names, " ")
	}
	require.Equal(t, picks(rand.NewPCG(1, 2)), picks(rand.NewPCG(1, 2)))
	require.NotEqual(t, picks(rand.NewPCG(1, 2)), picks(rand.NewPCG(1, 3)))
	require.NotEqual(t, picks(nil), picks(nil))
}

// More than 20 misses, over the whole request: round robin.
func TestManyMisses(t *testing.T) {
	lb := machine.NewTrial(t, random.New(), "big weight=1000000 down", "a", "b")
	lb.SetDraws(make([]uint32, 63)...) // all fall on big
	require.Equal(t, "a b a", lb.Picks(3))
	require.Equal(t, 63, lb.Drawn(), "21 each")

	lb.SetDraws(make([]uint32, 21)...)
	r := lb.Begin(nil)
	require.Equal(t, "b", r.Get())
	r.Free(peer.Next)
	require.Equal(t, "a", r.Get())
	require.Equal(t, 63+21, lb.Drawn(), "the retry draws no more")
}

// Of two different peers the second is taken, unless it has more requests for
// its weight.
func TestTwo(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []string
		held    []string
		draws   []uint32
		want    string
	}{
		{"a tie: the second", []string{"a", "b", "c"}, nil, []uint32{0, 1}, "b"},
		{"the second is less loaded", []string{"a", "b", "c"}, []string{"a"}, []uint32{0, 1}, "b"},
		{"the first is less loaded", []string{"a", "b", "c"}, []string{"b"}, []uint32{0, 1}, "a"},
		{"for its weight", []string{"a weight=3", "b"}, []string{"a", "a", "b"}, []uint32{3, 0}, "a"},
		{"the same peer again is drawn once more", []string{"a", "b", "c"}, nil, []uint32{0, 0, 0, 2}, "c"},
		{"so is one that cannot be had", []string{"a", "b down", "c"}, nil, []uint32{1, 0, 1, 2}, "c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, random.NewTwo(), test.servers...)
			for _, addr := range test.held {
				lb.HoldOn(addr, nil)
			}
			before := lb.Drawn()
			lb.SetDraws(test.draws...)
			require.Equal(t, test.want, lb.Picks(1))
			require.Equal(t, len(test.draws), lb.Drawn()-before)
		})
	}
}

// A lone live peer costs 21 draws each time: it is kept, which is a miss too, and
// no second is found.
func TestTwoWithALonePeer(t *testing.T) {
	lb := machine.NewTrial(t, random.NewTwo(), "a", "b down", "c down")
	require.Equal(t, "a a a", lb.Picks(3))
	require.Equal(t, 63, lb.Drawn())
}

// Quirk Q4: at a tie the second draw wins, and it must differ from the first, so
// an idle upstream of weights 9:1 gets about 37:163 of 200 requests, the weights turned
// round. (The light one is the second of nearly all pairs. The heavy one is when the
// light one was drawn first, 1 in 10, and where 21 draws find no second: 0.9^21, of
// which round robin gives it 9 in 10. That makes 39.7 of 200 in the long run.)
func TestQ4(t *testing.T) {
	lb := machine.NewTrial(t, random.NewTwo(), "a weight=9", "b")
	got := lb.Share(200)
	require.InDelta(t, 37, got["a"], 12)
	require.InDelta(t, 163, got["b"], 12)

	got = lb.Share(20_000)
	require.InDelta(t, .1+.9*math.Pow(.9, 21), float64(got["a"])/20_000, .015)
}

// Quirk Q7: a retry in the backup group draws over that group's own ranges.
// (nginx reads those of the primary group, beyond their end: one primary and
// two backups crash it. This is the one place where trunk does not do as nginx does.)
func TestQ7(t *testing.T) {
	for _, m := range []peer.Method{random.New(), random.NewTwo()} {
		lb := machine.NewTrial(t, m, "a", "b backup weight=1000", "c backup", "d backup")
		for range 50 {
			r := lb.Begin(nil)
			for range 4 {
				require.NotEqual(t, machine.Busy, r.Get())
				r.Free(peer.Next)
			}
			require.Equal(t, machine.Busy, r.Get())
		}
	}
	// b was taken by round robin; the draws of the retry fall on b, then c's range.
	lb := machine.NewTrial(t, random.New(), "a down", "b backup weight=10", "c backup", "d backup")
	r := lb.Begin(nil)
	require.Equal(t, "b", r.Get())
	r.Free(peer.Failed)
	lb.SetDraws(9, 11)
	require.Equal(t, "d", r.Get())
}

// A request that finds no primary is served by the backups by round robin.
func TestBackup(t *testing.T) {
	for _, m := range []peer.Method{random.New(), random.NewTwo()} {
		lb := machine.NewTrial(t, m, "a down", "b down", "c backup", "d backup", "e backup")
		require.Equal(t, "c d e c d e", lb.Picks(6))
		alone := machine.NewTrial(t, m, "a down", "c backup", "d backup", "e backup")
		require.Equal(t, "c d e c d e", alone.Picks(6))
		require.Zero(t, alone.Drawn())
	}
}
