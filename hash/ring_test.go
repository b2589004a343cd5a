package hash_test

import (
	"fmt"
	"hash/crc32"
	"math"
	"sort"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/peer"
)

// point is a point of the ring, and the server that it belongs to.
type point struct {
	Hash   uint32
	Server string
}

// ringOf makes the ring of server names with weights.
func ringOf(t require.TestingT, servers ...peer.Server) []point {
	set, err := peer.NewSet(servers, 0)
	require.NoError(t, err)
	return ringOfSet(t, set)
}

func ringOfSet(t require.TestingT, set *peer.Set) (points []point) {
	ring, err := hash.Ring(set, 0)
	require.NoError(t, err)
	for h, server := range ring {
		points = append(points, point{h, server})
	}
	return points
}

// serverAt is the server of the point with that hash, if there is one.
func serverAt(ring []point, h uint32) string {
	for _, p := range ring {
		if p.Hash == h {
			return p.Server
		}
	}
	return ""
}

// owner is the server that a key belongs to: that of the first point at or after
// its hash, or else of the first point of all.
func owner(ring []point, key string) string {
	h := crc32.ChecksumIEEE([]byte(key))
	i := sort.Search(len(ring), func(i int) bool { return ring[i].Hash >= h })
	return ring[i%len(ring)].Server
}

// A server name is split into host and port at its last colon, if only digits
// follow. The first point is the CRC of host, zero byte, port and four zero bytes.
func TestNamesAreSplit(t *testing.T) {
	for _, test := range []struct{ name, host, port string }{
		{"10.0.0.1:8080", "10.0.0.1", "8080"},
		{"10.0.0.1", "10.0.0.1", ""},
		{"backend.example.com:80", "backend.example.com", "80"},
		{"backend.example.com:http", "backend.example.com:http", ""},
		{"backend:", "backend", ""},
		{"[2001:db8::1]:8080", "[2001:db8::1]", "8080"},
		{"[2001:db8::1]", "[2001:db8::1]", ""},
		{"2001:db8::1", "2001:db8:", "1"},
		{"unix:/run/a.sock", "/run/a.sock", ""},
		{"unix:/run/a.sock:80", "/run/a.sock:80", ""},
		{"UNIX:/run/a.sock", "/run/a.sock", ""},
		{"80", "80", ""},
		{":80", "", "80"},
	} {
		t.Run(test.name, func(t *testing.T) {
			first := crc32.ChecksumIEEE([]byte(test.host + "\x00" + test.port + "\x00\x00\x00\x00"))
			require.Equal(t, test.name, serverAt(ringOf(t, peer.Server{Addr: test.name}), first))
		})
	}
}

// 160 points for each unit of weight, in the order of their hashes, and the same
// ones whenever they are made, whatever the order of the list.
func TestRing(t *testing.T) {
	a, b, c := peer.Server{Addr: "a:80", Weight: 3}, peer.Server{Addr: "b:80"}, peer.Server{Addr: "c:80", Weight: 2}
	ring := ringOf(t, a, b, c)
	points := map[string]int{}
	for i, p := range ring {
		points[p.Server]++
		require.True(t, i == 0 || ring[i-1].Hash < p.Hash, "in order, and each hash once")
	}
	require.Equal(t, map[string]int{"a:80": 480, "b:80": 160, "c:80": 320}, points)
	require.Equal(t, ring, ringOf(t, a, b, c), "two builds")
	require.Equal(t, ring, ringOf(t, c, a, b), "another order of the list")
	require.Equal(t, ring, ringOf(t, a, peer.Server{Addr: "d:80", Backup: true}, b, c), "backups have no points")

	down := b
	down.Down = true
	require.Equal(t, ring, ringOf(t, a, down, c), "a down peer has its points")
}

// A ring is made of names; addresses, of which one name may have several, have none of their own.
func TestAddressesOfOneName(t *testing.T) {
	servers := []peer.Server{
		{Addr: "10.0.0.1:80", Name: "backend:80"}, {Addr: "10.0.0.2:80", Name: "backend:80"}, {Addr: "other:80"}}
	require.Equal(t, ringOf(t, peer.Server{Addr: "backend:80"}, servers[2]), ringOf(t, servers...))

	lb := machine.NewTrialOf(t, hash.NewConsistent("$uri"), servers)
	ring := ringOf(t, servers...)
	for i := range 50 {
		text := fmt.Sprintf("user-%d", i)
		var got []string
		for range 2 {
			got = append(got, lb.One(peer.OK, key("%s", text)))
		}
		if owner(ring, text) == "other:80" {
			require.Equal(t, []string{"other:80", "other:80"}, got)
		} else {
			require.ElementsMatch(t, []string{"10.0.0.1:80", "10.0.0.2:80"}, got, "the trunk takes them by turns")
		}
	}
}

// Of equal hashes the server that stands first in the list keeps the point. Among a
// thousand servers there are some; the test looks for one.
func TestEqualHashesKeepTheFirst(t *testing.T) {
	first := map[uint32]string{}
	found := 0
	for i := range 1000 {
		name := fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)
		for _, p := range ringOf(t, peer.Server{Addr: name}) {
			other, taken := first[p.Hash]
			if !taken {
				first[p.Hash] = name
				continue
			}
			found++
			x, y := peer.Server{Addr: other}, peer.Server{Addr: name}
			for _, pair := range [][2]peer.Server{{x, y}, {y, x}} {
				ring := ringOf(t, pair[0], pair[1])
				require.Equal(t, pair[0].Addr, serverAt(ring, p.Hash))
				require.Len(t, ring, 2*160-1)
			}
		}
	}
	require.Positive(t, found)
}

// The same where one name is listed twice, with another in between: the point that its
// second line adds stands behind those of the server in between. The names were
// searched for: the 236th point of a:80 and the 26th of b31611:80 are equal.
func TestEqualHashesOfANameListedTwice(t *testing.T) {
	between := peer.Server{Addr: "b31611:80"}
	once, twice := peer.Server{Addr: "a:80"}, peer.Server{Addr: "a:80", Weight: 2}
	for _, test := range []struct {
		name    string
		servers []peer.Server
		want    string
	}{
		{"a, b, a twice as heavy", []peer.Server{once, between, twice}, "b31611:80"},
		{"a twice as heavy, b, a", []peer.Server{twice, between, once}, "a:80"},
		{"b, a twice as heavy", []peer.Server{between, twice}, "b31611:80"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, serverAt(ringOf(t, test.servers...), 2040404305))
		})
	}
}

// A key past the last point belongs to the first one.
func TestWrapAround(t *testing.T) {
	servers := []peer.Server{{Addr: "a:80"}, {Addr: "b:80"}, {Addr: "c:80"}}
	ring := ringOf(t, servers...)
	lb := machine.NewTrialOf(t, hash.NewConsistent("$uri"), servers)
	past := 0
	for i := 0; past < 3; i++ {
		require.Less(t, i, 1_000_000)
		text := fmt.Sprintf("user-%d", i)
		if crc32.ChecksumIEEE([]byte(text)) <= ring[len(ring)-1].Hash {
			continue
		}
		past++
		r := lb.Begin(key("%s", text))
		require.Equal(t, ring[0].Server, r.Get())
		r.Free(peer.Next)
		require.NotEqual(t, ring[0].Server, r.Get(), "and goes on from there")
		r.Free(peer.OK)
	}
}

// The keys of IPv6 servers spread over all of them: brackets and colons are
// part of the host.
func TestIPv6(t *testing.T) {
	for _, port := range []string{":8080", ""} {
		lb := machine.NewTrial(t, hash.NewConsistent("$uri"),
			"[2001:db8::1]"+port, "[2001:db8::2]"+port, "[2001:db8::3]"+port)
		got := count(place(lb, 9000))
		require.Len(t, got, 3)
		for addr, n := range got {
			require.InDelta(t, 3000, n, 800, addr)
		}
	}
}

// A server that goes takes only its own keys with it, and one that comes takes
// only those that become its own.
func TestOnlyTheKeysThatMustMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "servers")
		servers := make([]peer.Server, n)
		for i := range servers {
			servers[i] = peer.Server{Addr: fmt.Sprintf("10.0.0.%d:80", i), Weight: rapid.IntRange(1, 4).Draw(t, "weight")}
		}
		gone := rapid.IntRange(0, n-1).Draw(t, "gone")
		left := append(append([]peer.Server{}, servers[:gone]...), servers[gone+1:]...)
		before, after := ringOf(t, servers...), ringOf(t, left...)
		for i := range 200 {
			text := fmt.Sprintf("key-%d", i)
			if was := owner(before, text); was != servers[gone].Addr {
				require.Equal(t, was, owner(after, text))
			} else {
				require.NotEqual(t, was, owner(after, text))
			}
		}
	})
}

// Every key gets the peer that owns it, if that can be had; else, going along
// the ring, the first that can; and if there is none within 20 points, or at all, what
// round robin finds.
func TestEveryKeyFindsAPeer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "servers")
		servers := make([]peer.Server, n)
		up := map[string]bool{}
		for i := range servers {
			servers[i] = peer.Server{Addr: fmt.Sprintf("10.0.0.%d:80", i), Down: rapid.Bool().Draw(t, "down")}
			up[servers[i].Addr] = !servers[i].Down
		}
		ring := ringOf(t, servers...)
		u, err := peer.New(servers, hash.NewConsistent("$uri"), nil)
		require.NoError(t, err)
		for k := range 50 {
			r := peer.Request{Key: fmt.Sprintf("key-%d", k)}
			require.NoError(t, u.Begin(&r))
			h := crc32.ChecksumIEEE([]byte(r.Key))
			i := sort.Search(len(ring), func(i int) bool { return ring[i].Hash >= h })
			misses := 0
			for ; misses <= 20 && !up[ring[(i+misses)%len(ring)].Server]; misses++ {
			}
			err := u.Get(&r)
			p, _ := u.Peer(&r)
			switch {
			case misses <= 20:
				require.NoError(t, err)
				require.Equal(t, ring[(i+misses)%len(ring)].Server, p.Server.Addr)
			case r.Tries() > 0:
				require.NoError(t, err)
				require.True(t, up[p.Server.Addr])
			default:
				require.ErrorIs(t, err, peer.ErrNoLivePeers)
			}
		}
	})
}

// One peer in the ring, and another that is down or the backup.
func TestOnePeerInTheRing(t *testing.T) {
	for _, other := range []string{"b down", "b backup"} {
		lb := machine.NewTrial(t, hash.NewConsistent("$uri"), "a", other)
		require.Equal(t, map[string]int{"a": 100}, count(place(lb, 100)))
	}
	lb := machine.NewTrial(t, hash.NewConsistent("$uri"), "a")
	require.Equal(t, map[string]int{"a": 100}, count(place(lb, 100)))
}

// The ring's size is bounded, and the error has the figures.
func TestRingSize(t *testing.T) {
	for _, test := range []struct {
		name    string
		weights []int
		most    int
		points  int64 // refused; 0: not
	}{
		{"at the bound", []int{6, 4}, 1600, 0},
		{"above it", []int{6, 5}, 1600, 1760},
		{"above the default", []int{26_215}, 0, 4_194_400},
		{"a memory bomb", []int{math.MaxInt32, math.MaxInt32}, 0, 2 * math.MaxInt32 * 160},
		{"a greater one", []int{math.MaxInt / 2, math.MaxInt / 2}, 0, math.MaxInt64},
		{"bound below one server", []int{1}, 159, 160},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.points == math.MaxInt64 && strconv.IntSize < 64 {
				t.Skip("no weight is so great")
			}
			servers := make([]peer.Server, len(test.weights))
			for i, w := range test.weights {
				servers[i] = peer.Server{Addr: fmt.Sprintf("10.0.0.%d:80", i), Weight: w}
			}
			m := hash.NewConsistent("$uri")
			m.MaxPoints = test.most
			_, err := peer.New(servers, m, nil)
			if test.points == 0 {
				require.NoError(t, err)
				return
			}
			most := int64(test.most)
			if most == 0 {
				most = hash.DefaultMaxPoints
			}
			var tooLarge *peer.ConfigError
			require.ErrorAs(t, err, &tooLarge)
			require.Equal(t, "hash.Method.MaxPoints", tooLarge.Field)
			require.EqualValues(t, most, tooLarge.Value)
			require.Contains(t, tooLarge.Reason, fmt.Sprint(test.points))
			require.ErrorContains(t, err, fmt.Sprint(test.points))
		})
	}
}

// The addresses of one name share its points, so they count once.
func TestRingSizeOfAddresses(t *testing.T) {
	m := hash.NewConsistent("$uri")
	m.MaxPoints = 160
	_, err := peer.New([]peer.Server{{Addr: "10.0.0.1", Name: "a"}, {Addr: "10.0.0.2", Name: "a"}}, m, nil)
	require.NoError(t, err)
}

// FuzzRing holds rings of any two names against the literal model's.
func FuzzRing(f *testing.F) {
	f.Add("10.0.0.1:80", "[::1]:80", uint8(1), uint8(2))
	f.Add("unix:/a", "unix:/b:80", uint8(3), uint8(1))
	f.Add(":", "::", uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, x, y string, wx, wy uint8) {
		if x == "" || y == "" {
			return
		}
		servers := []peer.Server{{Addr: x, Weight: 1 + int(wx%4)}, {Addr: y, Weight: 1 + int(wy%4)}}
		want, err := model.Ring([]model.Server{{Addr: x, Weight: servers[0].Weight}, {Addr: y, Weight: servers[1].Weight}})
		require.NoError(t, err)
		got := ringOf(t, servers...)
		require.Len(t, got, len(want))
		for i, p := range want {
			require.Equal(t, point{p.Hash, p.Name}, got[i], "point %d", i)
		}
	})
}
