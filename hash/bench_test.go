package hash_test

import (
	"fmt"
	"testing"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
)

// BenchmarkGetFree is one request: get a peer, free it. No allocation.
func BenchmarkGetFree(b *testing.B) {
	for _, m := range both {
		b.Run(m.name, func(b *testing.B) { machine.BenchGetFree(b, m.method, 3, 10, 100, 1000) })
	}
}

// fourHundred are servers whose ring has 64,000 points, but for equal ones.
func fourHundred() []peer.Server {
	servers := make([]peer.Server, 400)
	for i := range servers {
		servers[i].Addr = fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)
	}
	return servers
}

// BenchmarkRing makes a ring of 64,000 points, and looks keys up in it.
func BenchmarkRing(b *testing.B) {
	m := hash.NewConsistent("$uri")
	b.Run("build", func(b *testing.B) {
		set, err := peer.NewSet(fourHundred(), 0)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Build(set); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("look-up", func(b *testing.B) {
		u, err := peer.New(fourHundred(), m, nil)
		if err != nil {
			b.Fatal(err)
		}
		keys := make([]string, 1024)
		for i := range keys {
			keys[i] = fmt.Sprintf("/user/%d", i)
		}
		var r peer.Request
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			r.Key = keys[i%len(keys)]
			if u.Begin(&r) != nil || u.Get(&r) != nil || u.Free(&r, peer.OK) != nil {
				b.Fatal("refused")
			}
		}
	})
}
