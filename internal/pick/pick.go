// Package pick is what several methods do alike in a Pick.
package pick

import "github.com/trunklb/trunk/peer"

// MaxMisses is the number of unavailable peers after which hash, ip_hash and random leave a
// request to round robin.
const MaxMisses = 20

// Preset returns what is decided before a method looks at the peers: round robin's
// choice for a request that has missed too often, or where alone says that there is
// nothing to choose; else the peer that the request is bound to. ok reports whether
// one of these holds.
func Preset(r *peer.Request, alone bool) (i int, ok bool) {
	if alone || r.Scratch.Misses > MaxMisses {
		return peer.RoundRobin, true
	}
	payer := r.Payer()
	return payer, payer >= 0
}

// Missed counts a miss, and reports whether it was one too many.
func Missed(r *peer.Request) bool {
	r.Scratch.Misses++
	return r.Scratch.Misses > MaxMisses
}
