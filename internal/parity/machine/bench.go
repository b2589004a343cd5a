package machine

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/trunklb/trunk/peer"
)

// BenchGetFree measures a request that gets a peer and frees it, OK, for each
// number of peers, of weights 1 to 5, on a clock that does not move.
func BenchGetFree(b *testing.B, m peer.Method, sizes ...int) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			benchGetFree(b, m, n, func() time.Duration { return 1_700_000_000 * time.Second })
		})
	}
}

// BenchRealClock is the same with the default clock.
func BenchRealClock(b *testing.B, m peer.Method, n int) {
	b.Run(fmt.Sprintf("n=%d/real-clock", n), func(b *testing.B) { benchGetFree(b, m, n, nil) })
}

func benchGetFree(b *testing.B, m peer.Method, n int, clock func() time.Duration) {
	servers := make([]peer.Server, n)
	for i := range servers {
		servers[i] = peer.Server{Addr: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256), Weight: 1 + i%5}
	}
	u, err := peer.New(servers, m, &peer.Options{Clock: clock, Source: rand.NewPCG(1, 2)})
	if err != nil {
		b.Fatal(err)
	}
	r := peer.Request{Key: "/index.html", Client: netip.MustParseAddr("192.0.2.1")}
	b.ReportAllocs()
	for b.Loop() {
		if u.Begin(&r) != nil || u.Get(&r) != nil || u.Free(&r, peer.OK) != nil {
			b.Fatal("refused")
		}
	}
}
