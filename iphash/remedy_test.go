package iphash_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/peer"
)

// client lets a request come from an address.
func client(addr netip.Addr) func(*peer.Request) {
	return func(r *peer.Request) { r.Client = addr }
}

// TestWholeRange has ten peers of weight 1000, and 50,000 clients from anywhere:
// shares in per cent, in the order of the list.
func TestWholeRange(t *testing.T) {
	tests := []struct {
		name   string
		method iphash.Method
		want   []int
	}{
		{"nginx", iphash.Method{}, []int{16, 16, 16, 16, 16, 16, 4, 0, 0, 0}},
		{"remedied", iphash.Method{WholeRange: true}, []int{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			servers := make([]peer.Server, 10)
			for i := range servers {
				servers[i] = peer.Server{Addr: fmt.Sprint(i), Weight: 1000}
			}
			l, got := machine.NewTrialOf(t, test.method, servers), map[string]int{}
			anywhere := rand.New(rand.NewPCG(5, 6))
			for range 50_000 {
				x := anywhere.Uint32()
				got[l.One(peer.OK, client(netip.AddrFrom4([4]byte{byte(x), byte(x >> 8), byte(x >> 16), 1})))]++
			}
			percent := make([]int, 10)
			for i := range percent {
				percent[i] = int(math.Round(float64(got[fmt.Sprint(i)]) / 500))
			}
			require.Equal(t, test.want, percent)
		})
	}
}

// TestWholeRangeIsStable has picks that must be the same in every version.
func TestWholeRangeIsStable(t *testing.T) {
	l := machine.NewTrial(t, iphash.Method{WholeRange: true}, "a weight=5", "b weight=3", "c", "d", "e", "f")
	tests := []struct{ client, want string }{
		{"192.0.2.1", "a b f e c d BUSY"},
		{"192.0.2.255", "a b f e c d BUSY"},
		{"192.0.3.1", "f a b e c d BUSY"},
		{"198.51.100.7", "b d a c f e BUSY"},
		{"2001:db8::1", "d a b f c e BUSY"},
		{"2001:db8::2", "b a c e d f BUSY"},
		{"::ffff:192.0.2.1", "a b f c d e BUSY"},
	}
	for _, test := range tests {
		require.Equal(t, test.want, l.Through(peer.Next, client(netip.MustParseAddr(test.client))), test.client)
	}
	require.Equal(t, "e b a d f c BUSY", l.Through(peer.Next, nil), "no address")
}

// clients are addresses of which no two count as one.
func clients(n int) []netip.Addr {
	list := make([]netip.Addr, n)
	for i := range list {
		if list[i] = netip.AddrFrom4([4]byte{192, byte(i >> 8), byte(i), 1}); i%2 == 1 {
			list[i] = netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 14: byte(i >> 8), 15: byte(i)})
		}
	}
	return list
}

// TestWholeRangeSharesByWeight: whatever the weights are, up to a total of 2^63,
// each peer gets its part of many clients, within chance.
func TestWholeRangeSharesByWeight(t *testing.T) {
	const n = 1000
	addresses := clients(n)
	rapid.Check(t, func(rt *rapid.T) {
		servers, total := make([]peer.Server, rapid.IntRange(2, 8).Draw(rt, "peers")), 0.0
		most := rapid.SampledFrom([]int{1, 100, 1e6, math.MaxInt / len(servers)}).Draw(rt, "greatest weight")
		for i := range servers {
			servers[i] = peer.Server{Addr: fmt.Sprint(i), Weight: rapid.IntRange(1, most).Draw(rt, "weight")}
			total += float64(servers[i].Weight)
		}
		l, got := machine.NewTrialOf(t, iphash.Method{WholeRange: true}, servers), map[string]int{}
		for _, addr := range addresses {
			got[l.One(peer.OK, client(addr))]++
		}
		for _, s := range servers {
			p := float64(s.Weight) / total
			require.InDelta(rt, n*p, got[s.Addr], 6*math.Sqrt(n*p*(1-p))+3, "peer %s", s.Addr)
		}
	})
}

// TestWholeRangeKeepsPeers: an address has the same peer again and again, so has
// all of its IPv4 network, and a request that goes on gets every peer once.
func TestWholeRangeKeepsPeers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		servers, live := make([]peer.Server, rapid.IntRange(2, 30).Draw(rt, "peers")), map[string]bool{}
		for i := range servers {
			s := &servers[i]
			s.Addr, s.MaxFails = fmt.Sprint(i), peer.NoMaxFails
			s.Weight = rapid.SampledFrom([]int{1, 2, 1_000_000_000}).Draw(rt, "weight")
			if s.Down = i > 0 && rapid.Bool().Draw(rt, "down"); !s.Down {
				live[s.Addr] = true
			}
		}
		l := machine.NewTrialOf(t, iphash.Method{WholeRange: true}, servers)
		b := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(rt, "client"))
		missed := func(r *machine.Try) bool { return r.Scratch.Misses > 20 } // it is round robin's then
		r := l.Begin(client(netip.AddrFrom4(b)))
		first, byHash := r.Get(), !missed(r)
		b[3]++
		if byHash {
			require.Equal(rt, first, l.One(peer.OK, client(netip.AddrFrom4(b))))
		}
		for name := first; name != machine.Busy; name = r.Get() {
			require.True(rt, live[name], "%s is down or had its turn", name)
			delete(live, name)
			r.Free(peer.Failed)
		}
		require.Empty(rt, live)
	})
}

func TestWholeRangeAllocatesNothing(t *testing.T) {
	l := machine.NewTrial(t, iphash.Method{WholeRange: true}, "a weight=9", "b", "c")
	r := peer.Request{Client: netip.MustParseAddr("2001:db8::1")}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if l.Upstream.Begin(&r) != nil || l.Get(&r) != nil || l.Free(&r, peer.OK) != nil {
			t.Fatal("refused")
		}
	}))
}
