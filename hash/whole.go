package hash

import (
	"github.com/trunklb/trunk/internal/spread"
	"github.com/trunklb/trunk/peer"
)

// whole is hash with WholeRange.
type whole struct{ ranges [2]peer.Ranges }

// Pick takes the key's next choice, also in the next retry, while the peer there
// cannot be had.
func (s *whole) Pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if m.Misses > mostMisses || g.Len() < 2 || r.Key == "" {
		return peer.RoundRobin
	}
	if payer := r.Payer(); payer >= 0 {
		return payer
	}
	seed := spread.Seed(r.Key)
	for {
		i := s.ranges[g.Index()].At(spread.Below(g.TotalWeight(), seed, m.Hashes))
		m.Hashes++
		if g.Eligible(i, r, now) {
			m.Rule = peer.HashRange
			return i
		}
		if m.Misses++; m.Misses > mostMisses {
			return peer.RoundRobin
		}
	}
}
