package peer

import (
	"math"

	"github.com/trunklb/trunk/internal/heap"
)

// levels is the engine of large groups behind Group.Least: the same picks, and the
// same cw and ew whenever they are looked at, without a walk over all peers.
//
// A level is the peers of one weight and one load that are available. Levels are in
// a binary heap by load / weight, so the least are at its top: several where
// different loads for different weights come to the same. Whatever happens to a
// peer moves it from its level to another.
//
// Within a level the order is the trunk's. If a level takes part in a round of it,
// all its peers gain the same, their weight, and their order stays; so a peer keeps
// b = cw - rounds*weight, and the rounds are the level's. A peer whose ew is not its
// weight gains something else: it has a level for itself.
//
// A peer that is not available is in no level. Full, it comes back when it is freed; in
// its fail window, at the tick at which that ends. By the same alarm one whose load
// changes with time moves.
type levels struct {
	by    *Selector
	spots []spot     // by peer
	nodes heap.Nodes // by peer: its place within its level; the key is b
	// alarms is by peer, too: first is the one whose tick comes first; the key is
	// -tick.
	alarms heap.Nodes
	first  int32
	tick   int64 // at which peers were last looked at
	stale  bool  // the clock went back: all are looked at again
	// most is the largest load of which all products are right. What nginx makes of a
	// larger one is left to the scan.
	most      int64
	overflows bool

	order  []level // a binary heap: the least load / weight first
	ids    []id    // of levels
	spare  int32   // the first id that is not used; the others hang on it by chain
	chains []int32 // the ids by weight and load: the first of those of one hash
	tied   []int32 // room for the places in order of those that are tied
}

// level is laid out for the round of a trunk in which many levels are tied: it goes
// through them one after the other.
type level struct {
	weight, load int64
	rounds       int64
	cw           int64 // of the first
	first        int32 // of its peers, by cw
	size         int32
	id           int32
	alone        bool // for one peer, whose cw is its own; in no chain
}

// id is a level's for as long as it is used.
type id struct {
	place int32 // in order
	chain int32 // the next of the same hash
}

// spot is where a peer is.
type spot struct {
	level int32 // its id; none: in none
	alarm bool
}

// less reports whether l has less load for its weight. Multiplying crosswise keeps it
// exact.
func (l *level) less(m *level) bool { return l.load*m.weight < m.load*l.weight }

// newLevels makes the engine with every peer in no level: the first pick looks
// at all.
func newLevels(g *Group, by *Selector) *levels {
	n := len(g.peers)
	size := 1
	for size < n {
		size *= 2
	}
	q := &levels{by: by, spots: make([]spot, n), nodes: heap.New(n), alarms: heap.New(n), first: heap.None, stale: true, most: math.MaxInt64,
		order: make([]level, 0, n), ids: make([]id, n), spare: none, chains: make([]int32, size), tied: make([]int32, 0, n)}
	for k := range q.chains {
		q.chains[k] = none
	}
	for i := range n {
		q.most = min(q.most, math.MaxInt64/g.peers[i].weight)
		q.spots[i].level = none
		q.ids[i].chain, q.spare = q.spare, int32(i)
	}
	return q
}

// pick is Least: who is first of the least level, or of the trunk's round among
// several peers.
func (q *levels) pick(g *Group, r *Request, now Now) int {
	if !r.tried.any {
		return q.choose(g, r)
	}
	for slot := range r.tried.all() {
		if owner, i := g.up.peer(slot); owner == g {
			q.leave(g, int32(i))
		}
	}
	best := q.choose(g, r)
	for slot := range r.tried.all() {
		if owner, i := g.up.peer(slot); owner == g {
			q.changed(g, i, now)
		}
	}
	return best
}

func (q *levels) choose(g *Group, r *Request) int {
	if len(q.order) == 0 {
		return None
	}
	sameWeight := q.collect()
	if top := &q.order[0]; len(q.tied) == 1 && top.size == 1 {
		r.Rule = q.by.leastRule()
		return int(top.first)
	}
	r.Rule = TieByTrunk
	if q.by.TiesByWinner && !sameWeight {
		return q.byWinner(g)
	}
	// As Trunk.Add and offer, in registers.
	best, bestCW, total := None, int64(math.MinInt64), int64(0)
	for _, place := range q.tied {
		l := &q.order[place]
		cw, gained := l.cw+l.weight, int64(l.size)*l.weight
		if l.alone {
			cw, gained = g.peers[l.first].gain()
		} else {
			l.rounds++
			l.cw = cw
		}
		total += gained
		if cw > bestCW || cw == bestCW && int(l.first) < best {
			best, bestCW = int(l.first), cw
		}
	}
	return q.settle(&Trunk{g, best, bestCW, total})
}

// settle is Trunk.Settle for a peer in a level.
func (q *levels) settle(t *Trunk) int {
	i := int32(t.best)
	l := q.of(i)
	if l.alone {
		return t.Settle()
	}
	l.first = q.nodes.Remove(l.first, i)
	q.push(l, i, t.bestCW-t.total)
	t.g.paid = t.total
	return t.best
}

// collect finds the levels that are tied for the least, and reports whether they are
// all of one weight. In a heap they are connected.
func (q *levels) collect() (sameWeight bool) {
	top := q.order[0]
	tied, sameWeight := append(q.tied[:0], 0), true
	for k := 0; k < len(tied); k++ {
		below := int(2*tied[k] + 1)
		for place := below; place <= below+1 && place < len(q.order); place++ {
			if l := &q.order[place]; !top.less(l) {
				tied = append(tied, int32(place))
				sameWeight = sameWeight && l.weight == top.weight
			}
		}
	}
	q.tied = tied
	return sameWeight
}

// byWinner is a round of the trunk for nginx's way to find ties (Load.ByWinner): who
// takes part depends on the order of the list, so the list is walked.
func (q *levels) byWinner(g *Group) int {
	least := q.order[0]
	t := Trunk{g: g, best: None}
	for i := range q.spots {
		l := q.of(int32(i))
		if l == nil {
			continue
		}
		load := l.load
		if load*least.weight != least.load*g.peers[i].weight {
			continue
		}
		if t.best < 0 {
			least.load = load
		}
		q.leave(g, int32(i))
		t.Add(i)
		q.join(g, int32(i), load)
		least.weight = g.peers[t.best].weight
	}
	return q.settle(&t)
}

// wake looks again at the peers whose tick has come. It reports false where the engine
// cannot do.
func (q *levels) wake(g *Group, now Now) bool {
	if q.stale || now.Tick < q.tick {
		q.stale, q.tick = false, now.Tick
		for i := range g.peers {
			q.changed(g, i, now)
		}
	}
	q.tick = now.Tick
	for q.first != heap.None && -q.alarms.Key(q.first) <= now.Tick {
		i := q.first
		q.first = q.alarms.Remove(q.first, i)
		q.spots[i].alarm = false
		q.changed(g, int(i), now)
	}
	return !q.overflows
}

// changed puts peer i where it belongs now: whatever of it has changed.
func (q *levels) changed(g *Group, i int, now Now) {
	q.stale = q.stale || now.Tick < q.tick
	q.tick = max(q.tick, now.Tick)
	p := &g.peers[i]
	w := p.load.Load()
	load, until := int64(none), int64(NoTick)
	switch {
	case w&down != 0 || g.full(i, w):
	case p.inWindow(w, now.Tick):
		until = p.checked + p.failTimeout + 1
	default:
		if load = int64(p.conns(w)); q.by.Load != nil {
			load, until = q.by.Load(g, i, now), q.by.LoadUntil(g, i, now)
		}
	}
	q.overflows = q.overflows || load > q.most
	if until != NoTick {
		q.setAlarm(int32(i), max(until, now.Tick+1))
	}
	if l := q.of(int32(i)); l != nil {
		if l.load == load && l.alone == (p.ew != p.weight) {
			return
		}
		q.leave(g, int32(i))
	}
	if load >= 0 {
		q.join(g, int32(i), load)
	}
}

// setAside takes a peer out of its level, until the next pick.
func (q *levels) setAside(g *Group, i int) {
	q.leave(g, int32(i))
	q.stale = true
}

// setAlarm lets a peer be looked at again at a tick. An earlier alarm than that is
// left as it is: then a new one is set.
func (q *levels) setAlarm(i int32, tick int64) {
	s := &q.spots[i]
	if s.alarm {
		if -q.alarms.Key(i) <= tick {
			return
		}
		q.first = q.alarms.Remove(q.first, i)
	}
	s.alarm = true
	q.first = q.alarms.Push(q.first, i, -tick)
}

// join puts a peer that is in no level into the one of its load.
func (q *levels) join(g *Group, i int32, load int64) {
	p := &g.peers[i]
	alone := p.ew != p.weight
	chain := q.chain(p.weight, load)
	k := *chain
	if alone || k == none {
		k = q.spare
		q.spare = q.ids[k].chain
		q.ids[k].chain = none
		if !alone {
			*chain = k
		}
		q.order = append(q.order, level{})
		q.up(int32(len(q.order)-1), level{weight: p.weight, load: load, first: heap.None, id: k, alone: alone})
	}
	q.spots[i].level = k
	l := q.of(i)
	q.push(l, i, p.cw)
	l.size++
}

// push puts a peer of a cw among those of a level.
func (q *levels) push(l *level, i int32, cw int64) {
	l.first = q.nodes.Push(l.first, i, cw-l.rounds*l.weight)
	l.cw = q.nodes.Key(l.first) + l.rounds*l.weight
}

// of returns the level that a peer is in; nil: in none.
func (q *levels) of(i int32) *level {
	if k := q.spots[i].level; k != none {
		return &q.order[q.ids[k].place]
	}
	return nil
}

// leave takes a peer out of its level, if it is in one.
func (q *levels) leave(g *Group, i int32) {
	l := q.of(i)
	if l == nil {
		return
	}
	g.peers[i].cw = q.currentWeight(g, int(i))
	q.spots[i].level = none
	l.first = q.nodes.Remove(l.first, i)
	l.size--
	if l.size > 0 {
		l.cw = q.nodes.Key(l.first) + l.rounds*l.weight
		return
	}
	k := &q.ids[l.id]
	if !l.alone {
		*q.chain(l.weight, l.load) = k.chain
	}
	k.chain, q.spare = q.spare, l.id
	last := len(q.order) - 1
	moved := q.order[last]
	q.order = q.order[:last]
	if int(k.place) < last {
		q.up(k.place, moved)
		q.down(q.ids[moved.id].place, moved)
	}
}

// chain returns where the level of a weight and load is entered, or is to be.
func (q *levels) chain(weight, load int64) *int32 {
	const odd = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio, which scatters what is close
	hash := (uint64(weight)*odd ^ uint64(load)) * odd
	at := &q.chains[hash>>32&uint64(len(q.chains)-1)]
	for *at != none {
		k := &q.ids[*at]
		if l := &q.order[k.place]; l.weight == weight && l.load == load {
			break
		}
		at = &k.chain
	}
	return at
}

// up puts a level in a place, or above it where it belongs; down, or below it.
func (q *levels) up(place int32, l level) {
	for place > 0 && l.less(&q.order[(place-1)/2]) {
		q.put(place, q.order[(place-1)/2])
		place = (place - 1) / 2
	}
	q.put(place, l)
}

func (q *levels) down(place int32, l level) {
	n := int32(len(q.order))
	for 2*place+1 < n {
		next := 2*place + 1
		if next+1 < n && q.order[next+1].less(&q.order[next]) {
			next++
		}
		if !q.order[next].less(&l) {
			break
		}
		q.put(place, q.order[next])
		place = next
	}
	q.put(place, l)
}

func (q *levels) put(place int32, l level) {
	q.order[place] = l
	q.ids[l.id].place = place
}

// currentWeight is a peer's cw.
func (q *levels) currentWeight(g *Group, i int) int64 {
	l := q.of(int32(i))
	if l == nil || l.alone {
		return g.peers[i].cw
	}
	return q.nodes.Key(int32(i)) + l.rounds*l.weight
}

// export leaves every peer's cw as the scan has it.
func (q *levels) export(g *Group) {
	for i := range g.peers {
		g.peers[i].cw = q.currentWeight(g, i)
	}
}
