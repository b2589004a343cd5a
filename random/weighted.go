package random

import (
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/peer"
)

// weighted is random two with KeepWeights.
type weighted struct{ one }

// pick draws a first peer as plain random does, and then looks for a second,
// different one that would relieve it. Where none is found the first is
// taken: round robin would make its share too small.
func (s weighted) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	first := s.one.pick(g, r, now)
	if first < 0 || r.Payer() >= 0 {
		return first
	}
	for range pick.MaxMisses {
		second := s.next(g)
		if second != first && g.Eligible(second, r, now) {
			r.Rule = peer.LessOfTwo
			if relieves(g, second, first) {
				return second
			}
			break
		}
	}
	return first
}

// relieves reports whether the second peer has less load for its weight than the
// first, and would have with one request more on either. Without the latter a
// light peer would win whenever the heavy one has anything to do.
func relieves(g *peer.Group, second, first int) bool {
	c1, w1 := uint64(g.Conns(first)), uint64(g.Weight(first))
	c2, w2 := uint64(g.Conns(second)), uint64(g.Weight(second))
	return c2*w1 < c1*w2 && (c2+1)*w1 < (c1+1)*w2
}
