package peer

import (
	"cmp"
	"math"
)

// NoTick is a tick that never comes.
const NoTick = math.MaxInt64

// steady reports whether the load changes only by what happens to the peer, and
// at ticks that are known before.
func (s *Selector) steady() bool { return s.Load == nil || s.LoadUntil != nil }

// leastRule is what the Decision says where one peer has less than all others.
func (s *Selector) leastRule() Rule { return cmp.Or(s.LoadRule, LeastConns) }

// Least picks the first peer with the smallest load / weight, by the Load of the
// Selector. If others have the same ratio the trunk chooses among them; else no
// weight moves. None if no peer is available. A Selector without a Load says that it
// ComparesConns.
func (g *Group) Least(r *Request, now Now) int {
	by := &g.up.selector
	// Where a choice is seldom a tie the scan is quick, and levels pay later than queues.
	if g.levels == nil && (len(g.peers)-1)/8 >= g.scanMost && by.steady() && by.comparesFrees() {
		g.export()
		g.levels = newLevels(g, by)
	}
	if g.levels != nil {
		if g.levels.wake(g, now) {
			return g.levels.pick(g, r, now)
		}
		g.export()
		g.scanMost = math.MaxInt
	}
	return g.scanLeast(r, now, by)
}

// scanLeast is the engine of small groups, and of loads that are not steady.
func (g *Group) scanLeast(r *Request, now Now, by *Selector) int {
	if g.loads == nil {
		g.loads = make([]int64, len(g.peers))
	}
	best, tied := None, false
	var least, weight uint64 // the best's
	peers, loads, of := g.peers, g.loads[:len(g.peers)], by.Load
	for i := range peers {
		p := &peers[i]
		w := p.load.Load()
		loads[i] = -1
		if g.barred(i, w, now) || r.tried.has(p.slot) {
			continue
		}
		load := int64(p.conns(w))
		if of != nil {
			load = of(g, i, now)
		}
		loads[i] = load
		// Multiplying crosswise keeps it exact. nginx does so without a sign.
		mine := uint64(g.Weight(i))
		switch product, smallest := uint64(load)*weight, least*mine; {
		case best < 0 || product < smallest:
			best, tied, least, weight = i, false, uint64(load), mine
		case product == smallest:
			tied = true
		}
	}
	if best < 0 {
		return None
	}
	if !tied {
		r.Rule = by.leastRule()
		return best
	}
	r.Rule = TieByTrunk
	t := g.Trunk()
	t.Add(best)
	for i := best + 1; i < len(peers); i++ {
		if by.TiesByWinner {
			weight = uint64(g.Weight(t.best))
		}
		if load := loads[i]; load >= 0 && uint64(load)*weight == least*uint64(g.Weight(i)) {
			t.Add(i)
		}
	}
	return t.Settle()
}
