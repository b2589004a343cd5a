package peer

import (
	"cmp"
	"math"
	"slices"
)

// queues is the engine of great groups behind the door for whole groups: the
// same picks, and the same cw and ew whenever they are looked at, without a
// walk over all peers.
//
// A peer is settled when nothing sets it apart: its ew is its weight, it is
// neither full nor failed out. In a pick all settled peers of one weight gain
// that weight, so their order changes only for the one that is picked. So
// there is one queue for each distinct weight, of its settled peers by (cw,
// then place in the list), and a pick compares only the heads. The peers that are not
// settled, and those that the request has tried, stand aside and are walked.
//
// Why it is exact. "The first of the list with the greatest cw" is the maximum
// of a total order, and a maximum is the same however its candidates are
// grouped. In place of cw a queued peer has b = cw - picks*weight, which stays
// as it is until the peer pays; the differences within a queue are those of cw.
// A tried peer stands aside unwalked, so its cw does not move in that pick, as in
// nginx. Settled has no clock in it: a peer that has failed out stays aside also
// when its window is over, until a success clears it.
type queues struct {
	picks int64
	total int64 // of the weights of the queued peers
	lists []queue
	links []link  // by peer
	aside []int32 // peers that are not queued; down and draining ones are in neither
}

// queue is the settled peers of one weight.
type queue struct {
	weight, cw int64 // cw is the head's
	head, tail int32
}

// link is a peer's place.
type link struct {
	next, prev int32
	list       int32 // the queue of its weight
	queued     bool
}

const nobody = -1

// newQueues makes the engine with every peer aside: the next pick queues those
// that are settled.
func newQueues(g *Group) *queues {
	q := &queues{links: make([]link, len(g.peers)), aside: make([]int32, 0, len(g.peers))}
	byWeight := map[int64]int32{}
	for i := range g.peers {
		p := &g.peers[i]
		list, known := byWeight[p.weight]
		if !known {
			list = int32(len(q.lists))
			byWeight[p.weight] = list
			q.lists = append(q.lists, queue{weight: p.weight, head: nobody, tail: nobody})
		}
		q.links[i].list = list
		if p.load.Load()&down == 0 {
			q.aside = append(q.aside, int32(i))
		}
	}
	// In the order of the queues, so that each goes to the end of its own at once.
	slices.SortStableFunc(q.aside, func(i, j int32) int { return cmp.Compare(g.peers[j].cw, g.peers[i].cw) })
	return q
}

// weak says of a peer whose word is w that its failures keep it from its queue. One that
// has become full was set aside when it was taken, and down ones never stand in any.
func (p *state) weak(w uint64) bool { return p.ew < p.weight || w&out != 0 }

// pick is one round of the trunk over the whole group; the request's payer, if
// it has one, pays in place of the winner.
func (q *queues) pick(g *Group, r *Request, now Now) int {
	t := Trunk{g: g, best: None, bestCW: math.MinInt64}
	if len(q.aside) > 0 || r.tried.any {
		t = q.walk(g, r, now)
	}
	q.picks++
	t.total += q.total
	lists := q.lists
	for k := range lists {
		if l := &lists[k]; l.head != nobody {
			l.cw += l.weight
			// As Trunk.offer, in registers.
			if l.cw > t.bestCW || l.cw == t.bestCW && int(l.head) < t.best {
				t.best, t.bestCW = int(l.head), l.cw
			}
		}
	}
	i := t.settle(r.payer)
	if i >= 0 && q.links[i].queued {
		q.unlink(g, i)
		q.insert(g, i)
	}
	return i
}

// walk lets those aside take part that may, or queues them where nothing sets them
// apart any more; and it sets aside those that the request has tried.
func (q *queues) walk(g *Group, r *Request, now Now) Trunk {
	t := Trunk{g: g, best: None, bestCW: math.MinInt64}
	still := q.aside[:0]
	for _, i := range q.aside {
		p := &g.peers[i]
		w := p.load.Load()
		switch {
		case g.barred(int(i), w, now) || r.tried.has(p.slot):
		case p.weak(w):
			t.Add(int(i))
		default:
			p.cw -= q.picks * p.weight
			q.total += p.weight
			q.insert(g, int(i))
			continue
		}
		still = append(still, i)
	}
	q.aside = still
	for slot := range r.tried.all() {
		if owner, i := g.up.peer(slot); owner == g {
			q.setAside(g, i)
		}
	}
	return t
}

// setAside takes a peer out of its queue, if it is in one.
func (q *queues) setAside(g *Group, i int) {
	if !q.links[i].queued {
		return
	}
	q.unlink(g, i)
	p := &g.peers[i]
	p.cw += q.picks * p.weight
	q.total -= p.weight
	q.aside = append(q.aside, int32(i))
}

// insert puts a peer into its queue. The place is looked for from the back:
// that is where one goes who has just paid.
func (q *queues) insert(g *Group, i int) {
	me := &q.links[i]
	l := &q.lists[me.list]
	b := g.peers[i].cw
	before := l.tail
	for before != nobody {
		d := b - g.peers[before].cw // picks*weight may have wrapped: only differences count
		if d < 0 || d == 0 && int(before) < i {
			break
		}
		before = q.links[before].prev
	}
	me.queued, me.prev = true, before
	if before == nobody {
		me.next = l.head
		l.head = int32(i)
		l.cw = b + q.picks*l.weight
	} else {
		me.next = q.links[before].next
		q.links[before].next = int32(i)
	}
	if me.next == nobody {
		l.tail = int32(i)
	} else {
		q.links[me.next].prev = int32(i)
	}
}

// unlink takes a peer from wherever it is in its queue.
func (q *queues) unlink(g *Group, i int) {
	me := &q.links[i]
	l := &q.lists[me.list]
	me.queued = false
	if me.next == nobody {
		l.tail = me.prev
	} else {
		q.links[me.next].prev = me.prev
	}
	if me.prev != nobody {
		q.links[me.prev].next = me.next
		return
	}
	l.head = me.next
	if l.head != nobody {
		l.cw = g.peers[l.head].cw + q.picks*l.weight
	}
}

// currentWeight is a peer's cw.
func (q *queues) currentWeight(g *Group, i int) int64 {
	p := &g.peers[i]
	if q.links[i].queued {
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
