package main

import (
	"fmt"
	"runtime"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/peer"
)

// memoryTable is what peers and ring points take on the heap.
func memoryTable() string {
	const n = 10_000
	servers := make([]peer.Server, n)
	for i := range servers {
		servers[i] = peer.Server{Addr: addr(i), Weight: 1 + i%10}
	}
	perPeer := func(m peer.Method, servers []peer.Server) float64 {
		return float64(heap(func() any {
			u, err := peer.New(servers, m, nil)
			must(err)
			return u
		})) / float64(len(servers))
	}
	// Ring points come 160 to a peer and weight.
	plain, ring := perPeer(nil, servers[:1000]), perPeer(hash.NewConsistent("$uri"), servers[:1000])
	points := 0
	for i := range 1000 {
		points += 160 * servers[i].Weight
	}
	return table([]string{"on the heap", "bytes"}, [][]string{
		{"a peer in round robin, with its configuration, n = 10,000", fmt.Sprintf("%.0f", perPeer(nil, servers))},
		{"a ring point of consistent hash", fmt.Sprintf("%.1f", (ring-plain)*1000/float64(points))},
	})
}

// heap is how much what is made takes.
func heap(build func() any) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := build()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}
