package peer

import (
	"math"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/internal/heap"
)

// queues is the engine behind the entry point for whole groups: the same picks, and
// the same cw and ew whenever they are looked at, without a walk over all peers.
//
// A peer is settled when nothing sets it apart: its ew is its weight, and it is
// available to every request. In a pick all settled peers of one weight gain
// that weight, so their order changes only for the one that is picked. So
// there is one queue for each distinct weight, of its settled peers by (cw,
// then place in the list), and a pick compares only the first of each. The others are
// set aside and scanned, but for those of which it is known until when no request
// may have them.
//
// Why it is exact. "The first of the list with the greatest cw" is the maximum
// of a total order, and a maximum is the same however its candidates are
// grouped. In place of cw a queued peer has b = cw - picks*weight, which stays
// as it is until the peer pays; the differences within a queue are those of cw.
// A peer that the request has tried is aside unscanned, so its cw does not move in
// that pick, as in nginx. A peer that has failed out stays aside also when its
// window is over, until a success clears it.
type queues struct {
	picks  int64
	total  int64 // of the weights of the queued peers
	lists  []queue
	links  []link     // by peer
	nodes  heap.Nodes // by peer, for those that are in a heap
	aside  []int32
	asleep int32 // the peers in their fail window: a heap by the tick at which it ends, first
	wakes  int64 // the tick of the first of them
}

// queue is the settled peers of one weight. Most are in a list, since the one that has
// paid belongs at the end. One that belongs far from the end is in a heap beside it.
type queue struct {
	weight, cw       int64 // cw is that of the first
	first            int32 // of both
	head, tail, heap int32
}

// link is a peer's place.
type link struct {
	next, prev int32 // in the list of its queue
	queue      int32 // that of its weight
	where      where
}

// where the engine keeps a peer.
type where uint8

const (
	aside    where = iota
	inList         // of its queue
	inHeap         // of its queue
	sleeping       // in its fail window
	away           // down, or full: nowhere until it is freed
)

// queued: in a queue, where cw holds b.
func (w where) queued() bool { return w == inList || w == inHeap }

const none = heap.None

// never is a tick that does not come.
const never = math.MaxInt64

// newQueues makes the engine with every peer aside: the next pick puts each in its
// place.
func newQueues(g *Group) *queues {
	n := len(g.peers)
	q := &queues{links: make([]link, n), nodes: heap.New(n), aside: make([]int32, 0, n), asleep: none, wakes: never}
	byWeight := map[int64]int32{}
	for i := range g.peers {
		p := &g.peers[i]
		k, known := byWeight[p.weight]
		if !known {
			k = int32(len(q.lists))
			byWeight[p.weight] = k
			q.lists = append(q.lists, queue{weight: p.weight, first: none, head: none, tail: none, heap: none})
		}
		q.links[i].queue = k
		if p.load.Load()&down == 0 {
			q.aside = append(q.aside, int32(i))
		} else {
			q.links[i].where = away
		}
	}
	return q
}

// weak says of a peer whose word is w that its failures keep it out of its queue.
func (p *state) weak(w uint64) bool { return p.ew < p.weight || w&out != 0 }

// pick is one round of the trunk over the whole group; the request's payer, if
// it has one, pays in place of the winner.
func (q *queues) pick(g *Group, r *Request, now Now) int {
	best, bestCW, total := None, int64(math.MinInt64), q.total
	if len(q.aside) > 0 || r.tried.any || now.Tick >= q.wakes {
		t := q.scan(g, r, now)
		best, bestCW, total = t.best, t.bestCW, t.total+q.total
	}
	q.picks++
	lists := q.lists
	for k := range lists {
		if l := &lists[k]; l.first != none {
			l.cw += l.weight
			// As Trunk.offer, in registers.
			if l.cw > bestCW || l.cw == bestCW && int(l.first) < best {
				best, bestCW = int(l.first), l.cw
			}
		}
	}
	if r.payer >= 0 {
		best = r.payer
	}
	if best < 0 {
		return None
	}
	g.peers[best].cw -= total
	g.paid = total
	switch me := &q.links[best]; me.where {
	case inList:
		l := &q.lists[me.queue]
		if i := int32(best); l.head == i && l.tail != i && q.before(g, l.tail, i) {
			// As leave and enter: from the head to the end.
			l.head = me.next
			q.links[l.head].prev = none
			q.links[l.tail].next = i
			me.prev, me.next = l.tail, none
			l.tail = i
			q.refresh(g, l)
			break
		}
		fallthrough
	case inHeap:
		q.leave(g, int32(best))
		q.enter(g, int32(best))
	}
	return best
}

// scan lets those aside take part that may, and puts the others in their place where
// they have one; it sets aside those that the request has tried.
func (q *queues) scan(g *Group, r *Request, now Now) Trunk {
	t := Trunk{g: g, best: None, bestCW: math.MinInt64}
	for now.Tick >= q.wakes {
		q.wake(q.asleep)
	}
	still := q.aside[:0]
	for _, i := range q.aside {
		p, me := &g.peers[i], &q.links[i]
		w := p.load.Load()
		switch {
		case g.full(int(i), w):
			me.where = away
			continue
		case p.inWindow(w, now.Tick):
			q.sleep(i, p.checked+p.failTimeout+1)
			continue
		case r.tried.has(p.slot):
		case p.weak(w):
			t.Add(int(i))
		default:
			p.cw -= q.picks * p.weight
			q.total += p.weight
			q.enter(g, i)
			continue
		}
		still = append(still, i)
	}
	q.aside = still
	for slot := range r.tried.all() {
		if owner, i := g.up.peer(slot); owner == g {
			q.setAside(g, int32(i))
		}
	}
	return t
}

// changed sets a peer aside to which something has happened that may give it another
// place.
func (q *queues) changed(g *Group, i int32) {
	p := &g.peers[i]
	w := p.load.Load()
	switch q.links[i].where {
	case inList, inHeap:
		if p.weak(w) || g.full(int(i), w) {
			q.setAside(g, i)
		}
	case sleeping:
		q.wake(i)
	case away:
		if w&down == 0 && !g.full(int(i), w) {
			q.links[i].where = aside
			q.aside = append(q.aside, i)
		}
	}
}

// setAside takes a peer out of its queue, if it is in one.
func (q *queues) setAside(g *Group, i int32) {
	if !q.links[i].where.queued() {
		return
	}
	q.leave(g, i)
	p := &g.peers[i]
	p.cw += q.picks * p.weight
	q.total -= p.weight
	q.links[i].where = aside
	q.aside = append(q.aside, i)
}

// sleep puts a peer that is aside among those that no request may have before a tick.
func (q *queues) sleep(i int32, tick int64) {
	q.links[i].where = sleeping
	q.asleep = q.nodes.Push(q.asleep, i, -tick) // the earliest is first
	q.wakes = -q.nodes.Key(q.asleep)
}

// wake sets a peer aside that is asleep.
func (q *queues) wake(i int32) {
	q.asleep, q.wakes = q.nodes.Remove(q.asleep, i), never
	if q.asleep != none {
		q.wakes = -q.nodes.Key(q.asleep)
	}
	q.links[i].where = aside
	q.aside = append(q.aside, i)
}

// before is the order within a queue.
func (q *queues) before(g *Group, i, j int32) bool {
	d := g.peers[i].cw - g.peers[j].cw // picks*weight may have wrapped: only differences count
	return d > 0 || d == 0 && i < j
}

// enter puts a peer into its queue. The place is looked for from the end, where the one
// that has just paid mostly belongs.
func (q *queues) enter(g *Group, i int32) {
	me := &q.links[i]
	l := &q.lists[me.queue]
	after, steps := l.tail, 0
	for after != none && steps < engine.MaxSteps && !q.before(g, after, i) {
		after = q.links[after].prev
		steps++
	}
	if steps < engine.MaxSteps {
		q.link(l, i, after)
	} else {
		me.where = inHeap
		l.heap = q.nodes.Push(l.heap, i, g.peers[i].cw)
	}
	q.refresh(g, l)
}

// link puts a peer into a list after another one; none: at its head.
func (q *queues) link(l *queue, i, after int32) {
	me := &q.links[i]
	me.where, me.prev = inList, after
	if after == none {
		me.next, l.head = l.head, i
	} else {
		me.next = q.links[after].next
		q.links[after].next = i
	}
	if me.next == none {
		l.tail = i
	} else {
		q.links[me.next].prev = i
	}
}

// leave takes a peer out of its queue.
func (q *queues) leave(g *Group, i int32) {
	me := &q.links[i]
	l := &q.lists[me.queue]
	if me.where == inHeap {
		l.heap = q.nodes.Remove(l.heap, i)
	} else {
		q.unlink(l, me)
	}
	q.refresh(g, l)
}

// unlink takes a peer out of a list.
func (q *queues) unlink(l *queue, me *link) {
	if me.next == none {
		l.tail = me.prev
	} else {
		q.links[me.next].prev = me.prev
	}
	if me.prev == none {
		l.head = me.next
	} else {
		q.links[me.prev].next = me.next
	}
}

// refresh finds the first of a queue.
func (q *queues) refresh(g *Group, l *queue) {
	l.first = l.head
	if l.heap != none && (l.head == none || q.before(g, l.heap, l.head)) {
		l.first = l.heap
	}
	if l.first != none {
		l.cw = g.peers[l.first].cw + q.picks*l.weight
	}
}

// currentWeight is a peer's cw.
func (q *queues) currentWeight(g *Group, i int) int64 {
	p := &g.peers[i]
	if q.links[i].where.queued() {
		return p.cw + q.picks*p.weight
	}
	return p.cw
}

// export leaves every peer's cw as the scan has it.
func (q *queues) export(g *Group) {
	for i := range g.peers {
		g.peers[i].cw = q.currentWeight(g, i)
	}
}
