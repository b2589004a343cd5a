// Package leastconn is nginx's least_conn: the peer with the fewest requests
// in relation to its weight.
package leastconn

import "github.com/trunklb/trunk/peer"

// Method is least_conn (docs/parity.md, section 7).
type Method struct{}

// New returns least_conn.
func New() Method { return Method{} }

// Build implements peer.Method. It never fails.
func (Method) Build(*peer.Set) (peer.Selector, error) { return selector{}, nil }

// KeyText implements peer.Method: least_conn needs no string.
func (Method) KeyText() string { return "" }

// String returns the method's line in an upstream block.
func (Method) String() string { return "least_conn" }

type selector struct{}

// ComparesConns implements peer.Comparer.
func (selector) ComparesConns() bool { return true }

// Pick takes the first peer with the smallest conns / weight. If others have
// the same ratio the trunk chooses among them; else no weight moves.
func (selector) Pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	if g.Single() {
		return peer.RoundRobin
	}
	if payer := r.Payer(); payer >= 0 {
		return payer
	}
	best, tied := peer.None, false
	var conns, weight int64 // the best's
	for i := range g.Len() {
		if !g.Eligible(i, r, now) {
			continue
		}
		// Multiplying crosswise keeps it exact.
		c, w := g.Conns(i), g.Weight(i)
		switch mine, least := c*weight, conns*w; {
		case best < 0 || mine < least:
			best, tied, conns, weight = i, false, c, w
		case mine == least:
			tied = true
		}
	}
	if !tied {
		r.Scratch.Rule = peer.LeastConns
		return best
	}
	r.Scratch.Rule = peer.TieByTrunk
	t := g.Trunk()
	for i := best; i < g.Len(); i++ {
		if g.Eligible(i, r, now) && g.Conns(i)*weight == conns*g.Weight(i) {
			t.Add(i)
		}
	}
	return t.Settle()
}
