// Package spread maps keys to numbers below a total, evenly, however large the
// total is. Results are the same in every process and version: clients that
// are built apart must agree on whose key it is.
//
// Both parts are published algorithms. The key's FNV-1a hash of 64 bits is the
// seed of SplitMix64, whose numbers are the key's first, second, ... choice; the
// upper half of the product of such a number and the total is below the total.
package spread

import "math/bits"

// Seed is the FNV-1a hash of the key.
func Seed[T string | []byte](key T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return h
}

// Below returns the n-th number, from 0, of the seed: at least 0 and below total,
// which must be above 0.
func Below(total int64, seed uint64, n uint32) int64 {
	x := seed + (uint64(n)+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	high, _ := bits.Mul64(x^x>>31, uint64(total))
	return int64(high)
}
