package iphash

import (
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/internal/spread"
	"github.com/trunklb/trunk/peer"
)

// whole is ip_hash with WholeRange.
type whole struct{ ranges [2]pick.Ranges }

// pick takes the address's next choice, also in the next retry, while the peer
// there is not available.
func (s *whole) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if i, ok := pick.Preset(r, g.Len() < 2); ok {
		return i
	}
	b, n := octets(r.Client)
	seed := spread.Seed(b[:n])
	for {
		i := s.ranges[g.Index()].At(spread.Below(g.TotalWeight(), seed, m.Hashes))
		m.Hashes++
		if g.Eligible(i, r, now) {
			r.Rule = peer.AddressHash
			return i
		}
		if pick.Missed(r) {
			return peer.RoundRobin
		}
	}
}
