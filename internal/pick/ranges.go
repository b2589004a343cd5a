package pick

import (
	"slices"

	"github.com/trunklb/trunk/peer"
)

// Ranges maps a number below the total weight to a peer: each peer of a group
// has a range as long as its weight, in list order, down peers too. hash,
// ip_hash and random share it. It is immutable.
type Ranges []int64

// NewRanges makes the ranges of a group; empty if the group is.
func NewRanges(s *peer.Set, group int) Ranges {
	r := make(Ranges, s.Len(group))
	sum := int64(0)
	for i := range r {
		sum += int64(s.Server(group, i).Weight)
		r[i] = sum
	}
	return r
}

// At returns the index of the peer whose range holds x, which must be at least
// 0 and below the total weight.
func (r Ranges) At(x int64) int {
	i, _ := slices.BinarySearch(r, x+1)
	return i
}
