package iphash_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/peer"
)

// from gives a request its client; "unix" has no address.
func from(client string) func(*peer.Request) {
	return func(r *peer.Request) {
		if client != "unix" {
			r.Client = netip.MustParseAddr(client)
		}
	}
}

// Ten peers show which clients share a hash.
var ten = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// IPv4 counts by its first three octets, IPv6 by all sixteen bytes, and who has
// no address counts as 0.0.0.
func TestWhatIsHashed(t *testing.T) {
	for _, test := range []struct {
		name string
		x, y string
		same bool
	}{
		{"one /24", "192.0.2.1", "192.0.2.254", true},
		{"another third octet", "192.0.2.1", "192.0.3.1", false},
		{"another first octet", "192.0.2.1", "193.0.2.1", false},
		{"IPv6 that differ in the last byte", "2001:db8::1", "2001:db8::2", false},
		{"IPv4-mapped is IPv6 here", "192.0.2.1", "::ffff:192.0.2.1", false},
		{"and differs in its last octet", "::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
		{"no address", "unix", "0.0.0.9", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			// What differs may still share one peer of ten, but not one of ten
			// and one of nine and one of eight.
			same := true
			for n := range 3 {
				lb := machine.NewTrial(t, iphash.New(), ten[n:]...)
				same = same && lb.One(peer.OK, from(test.x)) == lb.One(peer.OK, from(test.y))
			}
			require.Equal(t, test.same, same)
		})
	}
}

// The hash begins at 89 and takes each byte as h = (113 h + byte) mod 6271; the
// peer is h modulo the total weight. When that cannot be had it goes on from h, in
// the same get and in the next.
func TestTheHash(t *testing.T) {
	lb := machine.NewTrial(t, iphash.New(), ten...)
	h := 89
	next := func() string {
		for _, octet := range []int{192, 0, 2} {
			h = (113*h + octet) % 6271
		}
		return ten[h%10]
	}
	r := lb.Begin(from("192.0.2.1"))
	tried := map[string]bool{}
	for range 4 {
		want := next()
		for tried[want] {
			want = next()
		}
		tried[want] = true
		require.Equal(t, want, r.Get())
		r.Free(peer.Next)
	}
}

// A client keeps its peer while that can be had, whatever becomes of the others.
func TestAClientKeepsItsPeer(t *testing.T) {
	lb := machine.NewTrial(t, iphash.New(), "a", "b", "c")
	clients := []string{"192.0.2.1", "198.51.100.1", "203.0.113.1", "10.1.2.3", "10.1.3.3", "2001:db8::1", "unix"}
	before := map[string]string{}
	for _, c := range clients {
		before[c] = lb.One(peer.OK, from(c))
	}
	lb.HoldOn("b", nil).Free(peer.Failed)
	for _, c := range clients {
		if before[c] != "b" {
			require.Equal(t, before[c], lb.One(peer.OK, from(c)), "%s while b is out", c)
		} else {
			require.NotEqual(t, "b", lb.One(peer.OK, from(c)))
		}
	}
	lb.Advance(11 * time.Second)
	for _, c := range clients {
		require.Equal(t, before[c], lb.One(peer.OK, from(c)), "%s afterwards", c)
	}
	require.Equal(t, []int64{0, 0, 0}, lb.CurrentWeights(), "no weight moves")
}

// A down peer keeps its range, so that the clients of the others stay.
func TestADownPeerKeepsItsRange(t *testing.T) {
	up := machine.NewTrial(t, iphash.New(), "a", "b weight=2", "c")
	down := machine.NewTrial(t, iphash.New(), "a", "b weight=2 down", "c")
	for i := range 100 {
		client := from(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}).String())
		if was := up.One(peer.OK, client); was != "b" {
			require.Equal(t, was, down.One(peer.OK, client))
		}
	}
}

// More than 20 misses: round robin.
func TestManyMisses(t *testing.T) {
	lb := machine.NewTrial(t, iphash.New(), "big weight=100000 down", "a", "b", "c")
	got := ""
	for range 6 {
		got += lb.One(peer.OK, from("192.0.2.1"))
	}
	require.Equal(t, "abcabc", got)
}

// Quirk Q6: the hash is below 6271 and goes modulo the total weight; with great
// weights the last peers of the list get less than their share, or nothing. Ten
// peers of weight 1000: 16, 16, 16, 16, 16, 16, 4, 0, 0 and 0 per cent.
func TestQ6(t *testing.T) {
	var servers []string
	for _, addr := range ten {
		servers = append(servers, addr+" weight=1000")
	}
	lb := machine.NewTrial(t, iphash.New(), servers...)
	got := map[string]int{}
	const n = 50_000
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		client := random.Uint32()
		got[lb.One(peer.OK, func(r *peer.Request) {
			r.Client = netip.AddrFrom4([4]byte{byte(client >> 24), byte(client >> 16), byte(client >> 8), byte(client)})
		})]++
	}
	for i, percent := range []float64{16, 16, 16, 16, 16, 16, 4, 0, 0, 0} {
		require.InDelta(t, percent, float64(got[ten[i]])*100/n, 0.6, "peer %d", i)
	}
	require.Zero(t, got["7"]+got["8"]+got["9"])
}

// A request that finds no primary is served by the backups, by round robin; its retry
// there goes by the hash again, from the h reached.
func TestBackup(t *testing.T) {
	lb := machine.NewTrial(t, iphash.New(), "a down", "b down", "c backup", "d backup", "e backup")
	alone := machine.NewTrial(t, iphash.New(), "a down", "c backup", "d backup", "e backup")
	for _, want := range []string{"c", "d", "e", "c", "d", "e"} {
		require.Equal(t, want, alone.One(peer.OK, from("192.0.2.1")), "one client, but round robin")
		require.Equal(t, want, lb.One(peer.OK, from("192.0.2.1")))
	}

	r := lb.Begin(from("192.0.2.1"))
	tried := map[string]bool{}
	for range 3 {
		tried[r.Get()] = true
		r.Free(peer.Failed)
	}
	require.Len(t, tried, 3)
	require.Equal(t, machine.Busy, r.Get())
}
