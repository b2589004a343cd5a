package spread_test

import (
	"hash/fnv"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/spread"
)

// TestSeedIsFNV1a compares with the standard library's.
func TestSeedIsFNV1a(t *testing.T) {
	require.EqualValues(t, uint64(0xaf63dc4c8601ec8c), spread.Seed("a"))
	require.EqualValues(t, uint64(0x85944171f73967e8), spread.Seed("foobar"))
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOf(rapid.Byte()).Draw(t, "key")
		h := fnv.New64a()
		h.Write(key)
		require.Equal(t, h.Sum64(), spread.Seed(key))
		require.Equal(t, h.Sum64(), spread.Seed(string(key)))
	})
}

// TestBelowIsSplitMix64 has the first numbers of the published generator, seed
// 1234567. The greatest total keeps all of their bits but the last.
func TestBelowIsSplitMix64(t *testing.T) {
	published := []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
	}
	for n, want := range published {
		require.InDelta(t, want/2, spread.Below(math.MaxInt64, 1234567, uint32(n)), 1)
	}
}

func TestBelowIsBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Min(1).Draw(t, "total")
		x := spread.Below(total, rapid.Uint64().Draw(t, "seed"), rapid.Uint32().Draw(t, "n"))
		require.GreaterOrEqual(t, x, int64(0))
		require.Less(t, x, total)
	})
}
