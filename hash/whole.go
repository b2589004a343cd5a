package hash

import (
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/internal/spread"
	"github.com/trunklb/trunk/peer"
)

// whole is hash with WholeRange.
type whole struct{ ranges [2]pick.Ranges }

// pick takes the key's next choice, also in the next retry, while the peer there
// is not available.
func (s *whole) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if i, ok := pick.Preset(r, g.Len() < 2 || r.Key == ""); ok {
		return i
	}
	seed := spread.Seed(r.Key)
	for {
		i := s.ranges[g.Index()].At(spread.Below(g.TotalWeight(), seed, m.Hashes))
		m.Hashes++
		if g.Eligible(i, r, now) {
			r.Rule = peer.HashRange
			return i
		}
		if pick.Missed(r) {
			return peer.RoundRobin
		}
	}
}
