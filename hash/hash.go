// Package hash is nginx's hash, plain and consistent: a key keeps its peer.
//
// Its name shadows the standard library's; where both are needed import it as
//
//	import trunkhash "github.com/trunklb/trunk/hash"
package hash

import (
	"errors"
	"fmt"

	"github.com/trunklb/trunk/peer"
)

// Method is hash KEY [consistent] (docs/parity.md, section 7).
type Method struct {
	// Key is the text that is hashed, with nginx's variables in it, such as
	// "$host$request_uri". Package balancer makes the string; who uses package
	// peer alone puts it into Request.Key.
	Key string
	// Consistent hashes on the ketama ring: when a server comes or goes, only
	// the keys that must move do.
	Consistent bool
	// MaxPoints bounds the ring, which has 160 points per unit of weight and
	// takes 8 bytes for each. 0: DefaultMaxPoints.
	MaxPoints int
}

// DefaultMaxPoints is the bound of the ring: a sum of weights of 26,214.
const DefaultMaxPoints = 1 << 22

// New returns hash KEY.
func New(key string) Method { return Method{Key: key} }

// NewConsistent returns hash KEY consistent.
func NewConsistent(key string) Method { return Method{Key: key, Consistent: true} }

// ErrNoKey is returned by Build for a method without a key text.
var ErrNoKey = errors.New("trunk: hash: Key is empty; it names what is hashed, such as \"$request_uri\"")

// A RingSizeError says that the servers' weights ask for too large a ring.
type RingSizeError struct{ Points, MaxPoints int64 }

func (e *RingSizeError) Error() string {
	return fmt.Sprintf("trunk: hash: the ring would have %d points, 160 per unit of weight; MaxPoints is %d",
		e.Points, e.MaxPoints)
}

// Build implements peer.Method: it makes the ring or the ranges. ErrNoKey, or a
// *RingSizeError.
func (m Method) Build(set *peer.Set) (peer.Selector, error) {
	if m.Key == "" {
		return nil, ErrNoKey
	}
	if m.Consistent {
		return newConsistent(set, m.MaxPoints)
	}
	return &plain{ranges: [2]peer.Ranges{
		peer.NewRanges(set, peer.Primary), peer.NewRanges(set, peer.Backup)}}, nil
}

// KeyText implements peer.Method: it is Key.
func (m Method) KeyText() string { return m.Key }

// String returns the method's line in an upstream block.
func (m Method) String() string {
	if m.Consistent {
		return "hash " + m.Key + " consistent"
	}
	return "hash " + m.Key
}

const mostMisses = 20

type plain struct{ ranges [2]peer.Ranges }

// Pick hashes the key, each time with another prefix, until a peer can be had.
// The hashes add up over the whole request.
func (s *plain) Pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if m.Misses > mostMisses || g.Len() < 2 || r.Key == "" {
		return peer.RoundRobin
	}
	if payer := r.Payer(); payer >= 0 {
		return payer
	}
	for {
		m.Hash += checksum(prefix(m.Hashes), r.Key) >> 16 & 0x7fff
		m.Hashes++
		i := s.ranges[g.Index()].At(int64(m.Hash) % g.TotalWeight())
		if g.Eligible(i, r, now) {
			return i
		}
		if m.Misses++; m.Misses > mostMisses {
			return peer.RoundRobin
		}
	}
}
