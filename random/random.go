// Package random is nginx's random, with and without two.
package random

import "github.com/trunklb/trunk/peer"

// Method is random, or with Two set random two least_conn (docs/parity.md,
// section 7). Its numbers come from the upstream's source.
type Method struct {
	// Two draws two peers and takes the less loaded one.
	Two bool
	// KeepWeights lets Two keep the meaning of the weights. In nginx the second
	// draw wins a tie, and it must differ from the first (quirk Q4): an idle
	// upstream of weights 9:1 gets 37:163 of 200 requests. With KeepWeights the
	// second wins only where it has less load for its weight than the first,
	// and still would with this request on top; and where no second is found
	// the first is taken. An idle upstream then shares exactly by weight. Under
	// load heavy peers get somewhat more: in trials up to 93 instead of 90 per
	// cent of weights 9:1, and 79 instead of 71 of 5:1:1, at half the capacity;
	// near it, or with many requests at one time, shares are by weight again.
	// With equal weights nothing changes but who wins a tie. It costs nothing.
	KeepWeights bool
}

// New returns plain random.
func New() Method { return Method{} }

// NewTwo returns random two least_conn.
func NewTwo() Method { return Method{Two: true} }

// Build implements peer.Method. A *peer.ConfigError for KeepWeights without Two.
func (m Method) Build(set *peer.Set) (peer.Selector, error) {
	d := draws{peer.NewRanges(set, peer.Primary), peer.NewRanges(set, peer.Backup)}
	switch {
	case m.KeepWeights && !m.Two:
		return nil, &peer.ConfigError{Server: -1, Field: "random.Method.KeepWeights", Value: true,
			Reason: "is for Two; plain random keeps the weights"}
	case m.KeepWeights:
		return weighted{one{d}}, nil
	case m.Two:
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
			m.Rule = peer.Drawn
			return i
		}
		if m.Misses++; m.Misses > mostMisses {
			return peer.RoundRobin
		}
	}
}

type two struct{ draws }

// ComparesConns implements peer.Comparer.
func (two) ComparesConns() bool { return true }

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
				m.Rule = peer.LessOfTwo
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
