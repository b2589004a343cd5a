package hash_test

import (
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
)

var (
	wholeRange = hash.Method{Key: "$uri", WholeRange: true}
	byAddress  = hash.Method{Key: "$uri", Consistent: true, ByAddress: true}
	fullWalk   = hash.Method{Key: "$uri", Consistent: true, FullWalk: true}
)

// of gives a request a key.
func of(key string) func(*peer.Request) { return func(r *peer.Request) { r.Key = key } }

// keys are n keys.
func keys(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("/user/%d", i)
	}
	return list
}

// owners asks once for each key.
func owners(l *machine.Trial, keys []string) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = l.One(peer.OK, of(key))
	}
	return list
}

// through asks on for a key until there is no peer left for it; each has its turn.
func through(t rapid.TB, l *machine.Trial, key string, live map[string]bool) []string {
	var list []string
	r := l.Begin(of(key))
	for name := r.Get(); name != machine.Busy; name = r.Get() {
		require.True(t, live[name], "%s is down", name)
		require.NotContains(t, list, name)
		list = append(list, name)
		r.Free(peer.Failed)
	}
	require.Len(t, list, len(live))
	return list
}

// TestWholeRange has four peers of weight 10000: shares of 20,000 keys in per
// cent, in the order of the list.
func TestWholeRange(t *testing.T) {
	tests := []struct {
		name   string
		method hash.Method
		want   map[string]float64
	}{
		{"nginx", hash.New("$uri"), map[string]float64{"a": 31, "b": 31, "c": 31, "d": 8}},
		{"remedied", wholeRange, map[string]float64{"a": 25, "b": 25, "c": 25, "d": 25}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := machine.NewTrial(t, test.method, "a weight=10000", "b weight=10000", "c weight=10000", "d weight=10000")
			got := map[string]float64{}
			for _, name := range owners(l, keys(20_000)) {
				got[name] += 1. / 200
			}
			require.InDeltaMapValues(t, test.want, got, 1)
		})
	}
}

// TestWholeRangeIsStable has picks that must be the same in every version.
func TestWholeRangeIsStable(t *testing.T) {
	l := machine.NewTrial(t, wholeRange, "a weight=5", "b weight=3", "c", "d", "e", "f")
	tests := []struct{ key, want string }{
		{"/", "b a d f c e BUSY"},
		{"/index.html", "a c b d f e BUSY"},
		{"user-42", "e f a b d c BUSY"},
		{"user-43", "a f b c d e BUSY"},
		{"\xff\x00", "c f e b a d BUSY"},
	}
	for _, test := range tests {
		require.Equal(t, test.want, l.Through(peer.Next, of(test.key)), test.key)
	}
}

// TestWholeRangeSharesByWeight: whatever the weights are, up to a total of 2^63,
// each peer gets its part of many keys, within chance.
func TestWholeRangeSharesByWeight(t *testing.T) {
	const n = 1000
	rapid.Check(t, func(rt *rapid.T) {
		servers, total := make([]peer.Server, rapid.IntRange(2, 8).Draw(rt, "peers")), 0.0
		most := rapid.SampledFrom([]int{1, 100, 1e6, math.MaxInt / len(servers)}).Draw(rt, "greatest weight")
		for i := range servers {
			servers[i] = peer.Server{Addr: fmt.Sprint(i), Weight: rapid.IntRange(1, most).Draw(rt, "weight")}
			total += float64(servers[i].Weight)
		}
		got := map[string]int{}
		for _, name := range owners(machine.NewTrialOf(t, wholeRange, servers), keys(n)) {
			got[name]++
		}
		for _, s := range servers {
			p := float64(s.Weight) / total
			require.InDelta(rt, n*p, got[s.Addr], 6*math.Sqrt(n*p*(1-p))+3, "peer %s", s.Addr)
		}
	})
}

// TestWholeRangeKeepsPeers: a key has the same peer again and again, and a
// request that goes on gets every peer once.
func TestWholeRangeKeepsPeers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		servers, live := randomServers(rt, []int{1, 2, 1_000_000_000}, true)
		l := machine.NewTrialOf(t, wholeRange, servers)
		key := rapid.String().Draw(rt, "key")
		r := l.Begin(of(key))
		if first := r.Get(); r.Scratch.Hashes > 0 && r.Scratch.Misses <= 20 { // else it is round robin's
			require.Equal(rt, first, l.One(peer.OK, of(key)))
		}
		through(rt, l, key, live)
	})
}

// randomServers are up to 30 of which some are down; failures take none out.
func randomServers(t *rapid.T, weights []int, backups bool) (servers []peer.Server, live map[string]bool) {
	servers, live = make([]peer.Server, rapid.IntRange(2, 30).Draw(t, "peers")), map[string]bool{}
	unhappy := rapid.IntRange(0, 10).Draw(t, "down, of ten")
	for i := range servers {
		s := &servers[i]
		s.Addr, s.MaxFails = fmt.Sprintf("10.0.0.%d:80", i), peer.NoMaxFails
		s.Weight = rapid.SampledFrom(weights).Draw(t, "weight")
		s.Backup = backups && i > 0 && rapid.IntRange(0, 4).Draw(t, "backup") == 0
		if s.Down = rapid.IntRange(1, 10).Draw(t, "down") <= unhappy; !s.Down {
			live[s.Addr] = true
		}
	}
	return servers, live
}

// TestByAddress has one name with four addresses and asks four times for each of
// 1000 keys: how many keep their address, and what the addresses get.
func TestByAddress(t *testing.T) {
	tests := []struct {
		name   string
		method hash.Method
		kept   int
		share  map[string]int
	}{
		{"nginx", hash.NewConsistent("$uri"), 0, map[string]int{"a": 1000, "b": 1000, "c": 1000, "d": 1000}},
		{"remedied", byAddress, 1000, map[string]int{"a": 944, "b": 1072, "c": 972, "d": 1012}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := machine.NewTrialOf(t, test.method, []peer.Server{
				{Addr: "a", Name: "backends"}, {Addr: "b", Name: "backends"},
				{Addr: "c", Name: "backends"}, {Addr: "d", Name: "backends"}})
			kept, share := 0, map[string]int{}
			for _, key := range keys(1000) {
				first, same := "", 0
				for range 4 {
					name := l.One(peer.OK, of(key))
					share[name]++
					if first == "" || first == name {
						first = name
						same++
					}
				}
				if same == 4 {
					kept++
				}
			}
			require.Equal(t, test.kept, kept)
			require.Equal(t, test.share, share)
		})
	}
}

// TestByAddressOfAddresses: where names are addresses nothing changes.
func TestByAddressOfAddresses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		servers, _ := randomServers(rt, []int{1, 2, 3}, false)
		want := owners(machine.NewTrialOf(t, hash.NewConsistent("$uri"), servers), keys(100))
		require.Equal(rt, want, owners(machine.NewTrialOf(t, byAddress, servers), keys(100)))
	})
}

// TestOnlyOwnKeysMove: with ByAddress and FullWalk, when the addresses of a name
// come and go, or die, only keys of the one that goes move.
func TestOnlyOwnKeysMove(t *testing.T) {
	method := hash.Method{Key: "$uri", Consistent: true, ByAddress: true, FullWalk: true}
	keys := keys(100)
	rapid.Check(t, func(rt *rapid.T) {
		servers, live := randomServers(rt, []int{1, 2, 3}, false)
		for i := range servers {
			servers[i].Name = fmt.Sprint("host", i%3)
		}
		gone := rapid.IntRange(0, len(servers)-1).Draw(rt, "gone")
		if servers[gone].Down = false; len(live) < 2 {
			servers[(gone+1)%len(servers)].Down = false
		}
		before := owners(machine.NewTrialOf(t, method, servers), keys)

		removed := owners(machine.NewTrialOf(t, method, slices.Delete(slices.Clone(servers), gone, gone+1)), keys)
		dead := slices.Clone(servers)
		dead[gone].Down = true
		died := owners(machine.NewTrialOf(t, method, dead), keys)

		require.Equal(rt, removed, died)
		for i, name := range before {
			if name != servers[gone].Addr {
				require.Equal(rt, name, died[i], keys[i])
			} else {
				require.NotEqual(rt, name, died[i], keys[i])
			}
		}
	})
}

// TestFullWalk has forty servers of which 38 are down, and asks ten times for each
// of 1000 keys: how many see both of those that live.
func TestFullWalk(t *testing.T) {
	tests := []struct {
		name      string
		method    hash.Method
		scattered int
	}{
		{"nginx", hash.NewConsistent("$uri"), 357},
		{"remedied", fullWalk, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, scattered := machine.NewTrialOf(t, test.method, servers(40, 38)), 0
			for _, key := range keys(1000) {
				seen := map[string]bool{}
				for range 10 {
					seen[l.One(peer.OK, of(key))] = true
				}
				if len(seen) > 1 {
					scattered++
				}
			}
			require.Equal(t, test.scattered, scattered)
		})
	}
}

// servers are n, of which the first so many are down.
func servers(n, down int) []peer.Server {
	list := make([]peer.Server, n)
	for i := range list {
		list[i] = peer.Server{Addr: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256), Down: i < down}
	}
	return list
}

// TestFullWalkIsTheRing: a request that goes on gets the live peers in the order in
// which their points follow on the key's, each once; then the backups; and then
// it ends.
func TestFullWalkIsTheRing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		servers, live := randomServers(rt, []int{1, 2, 3}, true)
		l := machine.NewTrialOf(t, fullWalk, servers)
		key := rapid.StringN(1, -1, -1).Draw(rt, "key")
		ring := ringOfSet(rt, l.Set())
		at, _ := slices.BinarySearchFunc(ring, crc32.ChecksumIEEE([]byte(key)), func(p point, h uint32) int {
			return int(int64(p.Hash) - int64(h))
		})
		var want []string
		for n := range ring {
			if name := ring[(at+n)%len(ring)].Server; live[name] && !slices.Contains(want, name) {
				want = append(want, name)
			}
		}
		got := through(rt, l, key, live)
		require.Equal(rt, strings.Join(want, " "), strings.Join(got[:len(want)], " "))
	})
}

// TestFullWalkOfTwins: these two names have the same points, of which the first
// keeps them all. The second is reached nevertheless.
func TestFullWalkOfTwins(t *testing.T) {
	l := machine.NewTrial(t, fullWalk, "unix:/x down", "/x", "c down")
	require.Equal(t, "/x BUSY", l.Through(peer.OK, of("key")))
	l = machine.NewTrial(t, fullWalk, "unix:/x max_fails=0", "/x max_fails=0")
	require.Equal(t, "unix:/x /x BUSY", l.Through(peer.Failed, of("key")))
}

func TestOptionsOfTheOtherKind(t *testing.T) {
	tests := []struct {
		method hash.Method
		want   string
	}{
		{hash.Method{WholeRange: true, Consistent: true},
			"trunk: hash.Method.WholeRange: is not for Consistent, whose ring honours weights (got true)"},
		{hash.Method{ByAddress: true}, "trunk: hash.Method.ByAddress: is for the ring of Consistent (got true)"},
		{hash.Method{FullWalk: true}, "trunk: hash.Method.FullWalk: is for the ring of Consistent (got true)"},
	}
	for _, test := range tests {
		test.method.Key = "$uri"
		_, err := peer.New(servers(2, 0), test.method, nil)
		require.EqualError(t, err, test.want)
	}
}

func TestCuresAllocateNothing(t *testing.T) {
	for _, m := range []hash.Method{wholeRange, byAddress, fullWalk} {
		l := machine.NewTrialOf(t, m, servers(200, 190))
		r := peer.Request{Key: "/index.html"}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if l.Upstream.Begin(&r) != nil || l.Get(&r) != nil || l.Free(&r, peer.OK) != nil {
				t.Fatal("refused")
			}
		}), "%+v", m)
	}
}

// BenchmarkFullWalk asks for many keys of a thousand servers of which more and
// more are down.
func BenchmarkFullWalk(b *testing.B) {
	for _, m := range []hash.Method{hash.NewConsistent("$uri"), fullWalk} {
		for _, down := range []int{0, 500, 900, 990, 999, 1000} {
			b.Run(fmt.Sprintf("full=%v/down=%d", m.FullWalk, down), func(b *testing.B) {
				u, err := peer.New(servers(1000, down), m, nil)
				require.NoError(b, err)
				keys := keys(1024)
				var r peer.Request
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					n++
					r.Key = keys[n%len(keys)]
					if u.Begin(&r) == nil && u.Get(&r) == nil && u.Free(&r, peer.OK) != nil {
						b.Fatal("refused")
					}
				}
			})
		}
	}
}

func BenchmarkWholeRange(b *testing.B) { machine.BenchGetFree(b, wholeRange, 10) }
