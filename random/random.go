// Package random is nginx's random, with and without two.
package random

import "github.com/trunklb/trunk/peer"

// Method is random, or with Two set random two least_conn (docs/parity.md,
// section 7). Its numbers come from the upstream's source.
type Method struct {
	// Two draws two peers and takes the less loaded one.
	Two bool
}

// New returns plain random.
func New() Method { return Method{} }

// NewTwo returns random two least_conn.
func NewTwo() Method { return Method{Two: true} }

// Build implements peer.Method. It never fails.
func (m Method) Build(set *peer.Set) (peer.Selector, error) {
	d := draws{peer.NewRanges(set, peer.Primary), peer.NewRanges(set, peer.Backup)}
	if m.Two {
		return two{d}, nil
	}
	return one{d}, nil
}

// KeyText implements peer.Method: random needs no string.
func (Method) KeyText() string { return "" }

// String returns the method's line in an upstream block.
func (m Method) String() string {
	if m.Two {
		return "random two least_conn"
	}
	return "random"
}

const mostMisses = 20

// draws are the ranges of both groups.
type draws [2]peer.Ranges

// next draws a peer, eligible or not.
func (d *draws) next(g *peer.Group) int {
	return d[g.Index()].At(int64(g.Draw()) % g.TotalWeight())
}

type one struct{ draws }

// Pick draws until a peer can be had.
func (s one) Pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if m.Misses > mostMisses || g.Len() < 2 {
		return peer.RoundRobin
	}
	if payer := r.Payer(); payer >= 0 {
		return payer
	}
	for {
		i := s.next(g)
		if g.Eligible(i, r, now) {
			return i
		}
		if m.Misses++; m.Misses > mostMisses {
			return peer.RoundRobin
		}
	}
}

type two struct{ draws }

// Pick draws until it has two different peers that can be had, and takes the
// second unless that has more requests for its weight. That the first one
// counts as a miss is nginx's way.
func (s two) Pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if m.Misses > mostMisses || g.Len() < 2 {
		return peer.RoundRobin
	}
	if payer := r.Payer(); payer >= 0 {
		return payer
	}
	kept := peer.None
	for {
		i := s.next(g)
		if i != kept && g.Eligible(i, r, now) {
			if kept >= 0 {
				return lessLoaded(g, kept, i)
			}
			kept = i
		}
		if m.Misses++; m.Misses > mostMisses {
			return peer.RoundRobin
		}
	}
}

// lessLoaded returns the second peer, unless its conns / weight is greater.
func lessLoaded(g *peer.Group, first, second int) int {
	if g.Conns(second)*g.Weight(first) > g.Conns(first)*g.Weight(second) {
		return first
	}
	return second
}
