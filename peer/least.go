package peer

import "math"

// Load is what Group.Least compares peers by, in relation to their weights. The zero value
// is Conns.
type Load struct {
	// Rule is what the Decision says where one peer has less than all others.
	Rule Rule
	// Of returns the load of peer i, at least 0. nil: Conns.
	Of func(g *Group, i int, now Now) int64
	// Until returns the first tick after now at which Of would return something
	// else although nothing happens to the peer; NoTick if there is none. What
	// happens to a peer is what Events reports. nil, beside an Of: it may change at
	// any time, so every pick has to look at all peers.
	Until func(g *Group, i int, now Now) int64
	// ByWinner finds who is tied as nginx does in least_time (quirk Q1): a peer is
	// tied if it has the first one's load for the weight of the winner so far.
	ByWinner bool
}

// NoTick is a tick that never comes.
const NoTick = math.MaxInt64

// steady reports whether the load changes only by what happens to the peer, and
// at ticks that are known before.
func (l *Load) steady() bool { return l.Of == nil || l.Until != nil }

// byConns is Least's Load unless the Selector has another.
var byConns = Load{Rule: LeastConns}

// Least picks the first peer with the smallest load / weight, by the Load of the
// Selector. If others have the same ratio the trunk chooses among them; else no
// weight moves. None if no peer is available. A Selector without a Load says that it
// ComparesConns.
func (g *Group) Least(r *Request, now Now) int {
	l := g.up.selector.Load
	if l == nil {
		l = &byConns
	}
	// Where a choice is seldom a tie the scan is quick, and levels pay later than queues.
	if g.levels == nil && (len(g.peers)-1)/8 >= g.scanMost && l.steady() && g.up.selector.comparesFrees() {
		g.export()
		g.levels = newLevels(g, l)
	}
	if g.levels != nil {
		if g.levels.wake(g, now) {
			return g.levels.pick(g, r, now)
		}
		g.export()
		g.scanMost = math.MaxInt
	}
	return g.scanLeast(r, now, l)
}

// scanLeast is the engine of small groups, and of loads that are not steady.
func (g *Group) scanLeast(r *Request, now Now, l *Load) int {
	if g.loads == nil {
		g.loads = make([]int64, len(g.peers))
	}
	best, tied := None, false
	var least, weight uint64 // the best's
	peers, loads, of := g.peers, g.loads[:len(g.peers)], l.Of
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
		r.Rule = l.Rule
		return best
	}
	r.Rule = TieByTrunk
	t := g.Trunk()
	t.Add(best)
	for i := best + 1; i < len(peers); i++ {
		if l.ByWinner {
			weight = uint64(g.Weight(t.best))
		}
		if load := loads[i]; load >= 0 && uint64(load)*weight == least*uint64(g.Weight(i)) {
			t.Add(i)
		}
	}
	return t.Settle()
}
