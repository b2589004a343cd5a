package heap_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/heap"
)

// The greatest key is first; of equal keys, the peer that is first in the list.
func TestOrder(t *testing.T) {
	nodes, first := heap.New(5), heap.None
	for i, key := range []int64{3, 7, 7, 1, 7} {
		first = nodes.Push(first, int32(i), key)
	}
	first = nodes.Remove(first, 2) // from the middle
	var order []int32
	for first != heap.None {
		order = append(order, first)
		first = nodes.Remove(first, first)
	}
	require.Equal(t, []int32{1, 4, 0, 3}, order)
}

// Several heaps over the same nodes do what a look at all their peers does, with keys
// that wrap.
func TestAgainstAWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 5, 40, 200}).Draw(t, "peers")
		base := rapid.SampledFrom([]int64{0, math.MaxInt64 - 3, math.MinInt64}).Draw(t, "base")
		spread := rapid.SampledFrom([]int64{1, 4, 1 << 40}).Draw(t, "spread")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		nodes, first := heap.New(n), []int32{heap.None, heap.None, heap.None}
		in, above := make([]int, n), make([]int64, n) // in which heap, from 1; the key less base
		for range 20 * n {
			i := random.IntN(n)
			if h := in[i]; h > 0 {
				if random.IntN(2) == 0 { // the first, as a choice does
					i = int(first[h-1])
				}
				first[h-1] = nodes.Remove(first[h-1], int32(i))
				in[i] = 0
			} else {
				h := 1 + random.IntN(len(first))
				above[i] = random.Int64N(spread)
				first[h-1] = nodes.Push(first[h-1], int32(i), base+above[i])
				in[i] = h
			}
			for h := range first {
				want := heap.None
				for i := range n {
					if in[i] == h+1 && (want == heap.None || above[i] > above[want]) {
						want = int32(i)
					}
				}
				if first[h] != want {
					t.Fatalf("heap %d begins with %d, want %d", h, first[h], want)
				}
				if want != heap.None && nodes.Key(want) != base+above[want] {
					t.Fatalf("key of %d is %d, want %d", want, nodes.Key(want), base+above[want])
				}
			}
		}
	})
}

func TestNoAllocation(t *testing.T) {
	nodes := heap.New(100)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		first := heap.None
		for i := range int32(100) {
			first = nodes.Push(first, i, int64(i*37%11))
		}
		for first != heap.None {
			first = nodes.Remove(first, first)
		}
	}))
}
