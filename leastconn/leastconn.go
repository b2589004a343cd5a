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
	candidates := g.Candidates(r, now)
	tied := candidates[:0]  // the best and those that are its equals
	var conns, weight int64 // the best's
	for _, i := range candidates {
		// Multiplying crosswise keeps it exact.
		c, w := g.Conns(i), g.Weight(i)
		switch mine, least := c*weight, conns*w; {
		case len(tied) == 0 || mine < least:
			tied, conns, weight = append(tied[:0], i), c, w
		case mine == least:
			tied = append(tied, i)
		}
	}
	switch len(tied) {
	case 0:
		return peer.None
	case 1:
		r.Scratch.Rule = peer.LeastConns
		return tied[0]
	}
	r.Scratch.Rule = peer.TieByTrunk
	t := g.Trunk()
	for _, i := range tied {
		t.Add(i)
	}
	return t.Settle()
}
