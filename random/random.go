// Package random is nginx's random, with and without two.
package random

import (
	"github.com/trunklb/trunk/internal/fields"
	"github.com/trunklb/trunk/internal/lint"
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/peer"
)

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
	d := draws{pick.NewRanges(set, peer.Primary), pick.NewRanges(set, peer.Backup)}
	switch {
	case m.KeepWeights && !m.Two:
		return peer.Selector{}, &peer.ConfigError{Server: -1, Field: "random.Method.KeepWeights", Value: true,
			Reason: "is for Two; plain random keeps the weights"}
	case m.KeepWeights:
		return peer.Selector{Pick: weighted{one{d}}.pick, ComparesConns: true}, nil
	case m.Two:
		return peer.Selector{Pick: two{d}.pick, ComparesConns: true}, nil
	}
	return peer.Selector{Pick: one{d}.pick}, nil
}

// Describe implements peer.Method.
func (m Method) Describe() peer.Description {
	d := peer.Description{Directive: []string{"random"}, Remedies: fields.Set(m, "Two"), BackupsFirst: true, ByWeight: true}
	if m.Two {
		d.Name, d.Directive = "random two least_conn", append(d.Directive, "two")
	}
	if m.Two && !m.KeepWeights {
		d.Lint = lintTwo
	}
	return d
}

// lintTwo warns of uneven weights, which random two does not keep (quirk Q4).
func lintTwo(servers []peer.Server, warn lint.Warn) {
	first := 0
	for i := range servers {
		s := &servers[i]
		switch w := lint.Weight(s); {
		case s.Backup || s.Down || s.Drain:
		case first == 0:
			first = w
		case w != first:
			warn(lint.RandomTwoWeights, lint.Name(s), "random two inverts uneven weights while the servers are idle: 9:1 becomes about 2:8",
				"write even weights, use least_conn, or set KeepWeights of the method")
			return
		}
	}
}

// String returns the method's line in an upstream block.
func (m Method) String() string { return peer.Describe(m).Name }

// draws are the ranges of both groups.
type draws [2]pick.Ranges

// next draws a peer, eligible or not.
func (d *draws) next(g *peer.Group) int {
	return d[g.Index()].At(int64(g.Draw()) % g.TotalWeight())
}

type one struct{ draws }

// pick draws until a peer is available.
func (s one) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	if i, ok := pick.Preset(r, g.Len() < 2); ok {
		return i
	}
	for {
		i := s.next(g)
		if g.Eligible(i, r, now) {
			r.Rule = peer.Drawn
			return i
		}
		if pick.Missed(r) {
			return peer.RoundRobin
		}
	}
}

type two struct{ draws }

// pick draws until it has two different available peers, and takes the
// second unless that has more requests for its weight. That the first one
// counts as a miss is nginx's way.
func (s two) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	if i, ok := pick.Preset(r, g.Len() < 2); ok {
		return i
	}
	kept := peer.None
	for {
		i := s.next(g)
		if i != kept && g.Eligible(i, r, now) {
			if kept >= 0 {
				r.Rule = peer.LessOfTwo
				return lessLoaded(g, kept, i)
			}
			kept = i
		}
		if pick.Missed(r) {
			return peer.RoundRobin
		}
	}
}

// lessLoaded returns the second peer, unless its conns / weight is larger.
func lessLoaded(g *peer.Group, first, second int) int {
	c1, w1 := uint64(g.Conns(first)), uint64(g.Weight(first))
	c2, w2 := uint64(g.Conns(second)), uint64(g.Weight(second))
	if c2*w1 > c1*w2 { // unsigned, as in nginx
		return first
	}
	return second
}
