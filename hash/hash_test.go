package hash_test

import (
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
)

// both are the two methods of this package.
var both = []struct {
	name   string
	method hash.Method
}{{"plain", hash.New("$uri")}, {"consistent", hash.NewConsistent("$uri")}}

// key gives a request its key.
func key(format string, args ...any) func(*peer.Request) {
	return func(r *peer.Request) { r.Key = fmt.Sprintf(format, args...) }
}

// place asks where each of n keys goes.
func place(lb *machine.Trial, n int) []string {
	places := make([]string, n)
	for i := range places {
		places[i] = lb.One(peer.OK, key("user-%d", i))
	}
	return places
}

// count counts places by peer.
func count(places []string) map[string]int {
	n := map[string]int{}
	for _, p := range places {
		n[p]++
	}
	return n
}

// A hash without a key text is refused.
func TestNoKeyText(t *testing.T) {
	for _, m := range []hash.Method{hash.New(""), hash.NewConsistent(""), {}} {
		_, err := peer.New(machine.Servers(t, "a", "b"), m, nil)
		require.ErrorIs(t, err, hash.ErrNoKey)
	}
	require.Equal(t, "$uri", hash.New("$uri").Describe().Key)
}

// A request whose key is empty goes by round robin.
func TestEmptyKey(t *testing.T) {
	for _, m := range both {
		t.Run(m.name, func(t *testing.T) {
			lb := machine.NewTrial(t, m.method, "a weight=5", "b", "c")
			require.Equal(t, "a a b a c a a", lb.Picks(7))
		})
	}
}

// A key keeps its peer, and the weights move only where the trunk is used.
func TestAKeyKeepsItsPeer(t *testing.T) {
	for _, m := range both {
		t.Run(m.name, func(t *testing.T) {
			lb := machine.NewTrial(t, m.method, "a", "b", "c")
			first := place(lb, 300)
			for addr, n := range count(first) {
				require.Greater(t, n, 40, "keys on %s", addr)
			}
			require.Len(t, count(first), 3)
			require.Equal(t, first, place(lb, 300))
			require.Equal(t, []int64{0, 0, 0}, lb.CurrentWeights())
			require.Equal(t, first, place(machine.NewTrial(t, m.method, "a", "b", "c"), 300), "in another process too")
		})
	}
}

// While a peer is out its keys go elsewhere, and all others stay; then they come back.
func TestAPeerThatIsOut(t *testing.T) {
	for _, m := range both {
		t.Run(m.name, func(t *testing.T) {
			lb := machine.NewTrial(t, m.method, "a", "b", "c")
			before := place(lb, 300)
			lb.HoldOn("b", key("user-1")).Free(peer.Failed)
			during := place(lb, 300)
			for i := range before {
				if before[i] == "b" {
					require.NotEqual(t, "b", during[i])
				} else {
					require.Equal(t, before[i], during[i])
				}
			}
			require.Contains(t, count(during), "a")
			lb.Advance(11 * time.Second)
			require.Equal(t, before, place(lb, 300))
		})
	}
}

// A peer that is configured down keeps its range: the keys of the others stay.
func TestADownPeerKeepsItsRange(t *testing.T) {
	before := place(machine.NewTrial(t, hash.New("$uri"), "a", "b weight=2", "c"), 300)
	after := place(machine.NewTrial(t, hash.New("$uri"), "a", "b weight=2 down", "c"), 300)
	for i := range before {
		if before[i] != "b" {
			require.Equal(t, before[i], after[i])
		}
	}
}

// No soft degradation: until it is out, a peer that fails keeps its full share.
func TestFailuresDoNotWeaken(t *testing.T) {
	for _, m := range both {
		t.Run(m.name, func(t *testing.T) {
			lb := machine.NewTrial(t, m.method, "a max_fails=3 weight=9", "b weight=9")
			before := place(lb, 300)
			lb.HoldOn("a", key("user-1")).Free(peer.Failed)
			lb.HoldOn("a", key("user-1")).Free(peer.Failed)
			require.Less(t, lb.Of("a").EffectiveWeight, int64(9))
			require.Equal(t, before, place(lb, 300))
		})
	}
}

// The hash of the first attempt, and of the second: the CRC of the key, and that of
// "1" and the key, add up.
func TestTheHash(t *testing.T) {
	lb := machine.NewTrial(t, hash.New("$uri"), "0", "1", "2", "3", "4")
	h := func(text string) uint32 { return crc32.ChecksumIEEE([]byte(text)) >> 16 & 0x7fff }
	seconds := 0
	for i := range 100 {
		text := fmt.Sprintf("user-%d", i)
		r := lb.Begin(key("%s", text))
		first := h(text)
		require.Equal(t, fmt.Sprint(first%5), r.Get())
		r.Free(peer.Next)
		if second := (first + h("1"+text)) % 5; second != first%5 {
			require.Equal(t, fmt.Sprint(second), r.Get())
			seconds++
		}
	}
	require.Greater(t, seconds, 50)
}

// After more than 20 misses the request goes by round robin, for good.
func TestManyMisses(t *testing.T) {
	for _, m := range both {
		t.Run(m.name, func(t *testing.T) {
			servers := make([]peer.Server, 60)
			for i := range servers {
				servers[i] = peer.Server{Addr: fmt.Sprint(i), Down: i < 58}
			}
			lb := machine.NewTrialOf(t, m.method, servers)
			byTrunk := 0
			for i := range 100 {
				before := lb.CurrentWeights()
				require.Contains(t, []string{"58", "59"}, lb.One(peer.OK, key("user-%d", i)))
				if !slices.Equal(before, lb.CurrentWeights()) {
					byTrunk++
				}
			}
			require.Greater(t, byTrunk, 20, "requests that have moved the trunk's weights")
		})
	}
}

// Quirk Q6: the first hash is below 32768 and is taken modulo the total weight;
// with great weights the last peers of the list get less than their share, or
// nothing. Four peers of weight 10000: 31, 31, 31 and 8 per cent.
func TestQ6(t *testing.T) {
	lb := machine.NewTrial(t, hash.New("$uri"), "a weight=10000", "b weight=10000", "c weight=10000", "d weight=10000")
	const keys = 20_000
	got := count(place(lb, keys))
	for addr, percent := range map[string]float64{"a": 30.5, "b": 30.5, "c": 30.5, "d": 8.4} {
		require.InDelta(t, percent, float64(got[addr])*100/keys, 1, addr)
	}
}

// A request that finds no primary is served by the backups by round robin; its
// retry there goes by the method again, of which consistent has no ring for them.
func TestBackup(t *testing.T) {
	for _, m := range both {
		t.Run(m.name, func(t *testing.T) {
			alone := machine.NewTrial(t, m.method, "a down", "c backup", "d backup", "e backup")
			lb := machine.NewTrial(t, m.method, "a down", "b down", "c backup", "d backup", "e backup")
			for _, want := range []string{"c", "d", "e", "c", "d", "e"} {
				require.Equal(t, want, alone.One(peer.OK, key("user-1")), "one key, but round robin")
				require.Equal(t, want, lb.One(peer.OK, key("user-1")))
			}
			r := lb.Begin(key("user-1"))
			tried := map[string]bool{}
			for range 3 {
				tried[r.Get()] = true
				r.Free(peer.Failed)
			}
			require.Len(t, tried, 3)
			require.Equal(t, machine.Busy, r.Get())
		})
	}
}
