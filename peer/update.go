package peer

import (
	"math"
	"math/bits"

	"github.com/trunklb/trunk/internal/engine"
)

// place is where the peer of a slot is. The list order may change while
// requests hold slots.
type place struct {
	group int8
	index int32
}

// removed is the list of the peers that were removed while requests held them. A removed
// peer is idle when its last request ends, and is gone with the next update.
const removed = 2

// Update makes servers the peers of the upstream, all at once. The error is a
// *ConfigError or what the method's Build returned; then nothing has changed. The
// same servers again change nothing at all, and servers that differ in their Labels
// alone change only these: nothing is built again, and it is no new set.
//
// A peer is known by its address (of several with one address, the first is
// the first, and so on). One that stays keeps its state, except that
//   - its cw grows or shrinks with its weight, and where the weights of the
//     group's usable peers have become less in sum, all cw shrink with the sum:
//     a debt is worth requests, and must not turn into a burst;
//   - its ew is the new weight if it was whole, else at most that.
//
// A request in flight is freed to its own peer. Its next Get picks in the
// present set, never a peer that it has tried or that was removed. A peer that
// is removed is gone when its last request ends; added again it is new.
func (u *Upstream) Update(servers []Server) error {
	idle, err := u.update(servers)
	// The hooks may call Update in their turn.
	for _, p := range idle {
		u.onIdle(p.Peer, p.attached, p.removed)
	}
	if u.watched {
		u.report()
	}
	return err
}

// update does it, and returns the peers that are idle by it.
func (u *Upstream) update(servers []Server) ([]idle, error) {
	u.updating.Lock()
	defer u.updating.Unlock()
	before := u.set.Load()
	set, err := newSet(servers, u.resolution, u.remedies.unit())
	if err == nil {
		err = u.policy.checkServers(servers)
	}
	if err != nil {
		return nil, err
	}
	if before == nil {
		before = &Set{}
	} else if before.alike(set) {
		if !before.groupsEqual(set) {
			u.relabel(before, set)
		}
		return nil, nil
	}
	// Rings and ranges are made before the lock is taken.
	selector := Selector{Pick: PickAll}
	if u.method != nil {
		if selector, err = u.method.Build(set); err != nil {
			return nil, err
		}
		if selector.Pick == nil {
			return nil, &ConfigError{Server: -1, Field: "Method", Value: u.name, Reason: "has built a Selector without a Pick"}
		}
	}
	return u.exchange(u.plan(before, set, selector)), nil
}

// relabel exchanges the set for one that differs in labels alone. To the requests it
// is the same set.
func (u *Upstream) relabel(before, set *Set) {
	u.mu.Lock()
	defer u.mu.Unlock()
	set.version, set.born, set.slots = before.version, before.born, before.slots
	for gi := range set.groups {
		for i := range set.groups[gi] {
			u.groups[gi].cold[i].member = &set.groups[gi][i]
		}
	}
	u.set.Store(set)
}

// plan is an update as far as it can be made before the lock is taken: the state of peers
// is all that it lacks.
type plan struct {
	before, set *Set
	selector    Selector
	groups      [2]Group
	from        [2][]place // by new peer: where it was, or nowhere
	fresh       []place    // the new peers that were nowhere
	removed     []place    // the old ones that are nowhere now, in list order
	used        []bool     // by slot; room, as places is and the set's born
	places      []place
}

// nowhere is the place of no peer.
var nowhere = place{group: None}

func (u *Upstream) plan(before, set *Set, selector Selector) *plan {
	p := &plan{before: before, set: set, selector: selector}
	known := byAddr(before)
	for gi := range set.groups {
		p.groups[gi] = u.newGroup(set, gi, &selector)
		p.from[gi] = make([]place, set.Len(gi))
		for i := range p.from[gi] {
			m := &set.groups[gi][i]
			at := known.take(m.Addr)
			p.from[gi][i] = at
			if at == nowhere {
				p.groups[gi].cold[i].attached = u.attach(m.Server)
				p.fresh = append(p.fresh, place{int8(gi), int32(i)})
			}
		}
	}
	for gi := range before.groups {
		for i := range before.groups[gi] {
			if at := (place{int8(gi), int32(i)}); known.takeAt(before.groups[gi][i].Addr, at) {
				p.removed = append(p.removed, at)
			}
		}
	}
	slots := before.slots + len(p.fresh)
	p.used, p.places = make([]bool, slots), make([]place, slots)
	set.version, set.slots, set.born = before.version+1, before.slots, make([]int, slots)
	copy(set.born, before.born)
	return p
}

// idle is a peer that was removed, or is down or draining, and that no request
// holds any more; see Options.OnIdle.
type idle struct {
	Peer
	attached any
	removed  bool
}

func (g *Group) idle(i int, removed bool) idle {
	return idle{g.peer(i), g.cold[i].attached, removed}
}

// exchange puts the set in the place of the one before, and returns the peers
// that are idle by it.
func (u *Upstream) exchange(p *plan) []idle {
	now := u.lock()
	defer u.mu.Unlock()
	before, set := p.before, p.set
	u.selector = p.selector
	u.listens.Store(u.selector.listens())
	u.timed = u.selector.listens() || u.record != nil

	old := u.groups
	copy(u.groups[:], p.groups[:])
	for gi := range p.from {
		after, sum := set.usable[gi].weight, before.usable[gi].weight
		if after > sum {
			after, sum = 1, 1
		}
		for i, at := range p.from[gi] {
			if at != nowhere {
				u.groups[gi].inherit(i, &old[at.group], int(at.index), after, sum)
			}
		}
	}
	list := u.remove(&old, p.removed)
	u.assignSlots(p)
	if h := u.remedies; h != nil && before.version > 0 {
		for _, f := range p.fresh {
			h.added(&u.groups[f.group], int(f.index), now)
		}
	}
	u.set.Store(set)
	list = append(list, u.closed(p)...)
	if u.record != nil {
		u.record.updated(set, now)
	}
	if u.journal != nil && before.version > 0 {
		u.journal.write(Event{Kind: SetChanged, Time: wallTime(now.Time)})
		for _, p := range list {
			u.journal.write(Event{Kind: PeerIdle, Time: wallTime(now.Time), Peer: p.Peer, Removed: p.removed})
		}
	}
	return list
}

// addresses are the peers of a set by address, in list order.
type addresses map[string][]place

func byAddr(s *Set) addresses {
	a := addresses{}
	for gi := range s.groups {
		for i, m := range s.groups[gi] {
			a[m.Addr] = append(a[m.Addr], place{int8(gi), int32(i)})
		}
	}
	return a
}

// take returns the first peer of an address that has not been taken.
func (a addresses) take(addr string) place {
	list := a[addr]
	if len(list) == 0 {
		return nowhere
	}
	a[addr] = list[1:]
	return list[0]
}

// takeAt takes the peer of an address that is next, if it is in that place.
func (a addresses) takeAt(addr string, at place) bool {
	list := a[addr]
	if len(list) == 0 || list[0] != at {
		return false
	}
	a[addr] = list[1:]
	return true
}

// newGroup makes a group of new peers, which have no slots yet.
func (u *Upstream) newGroup(set *Set, gi int, s *Selector) Group {
	members := set.groups[gi]
	unit := u.remedies.unit()
	g := Group{up: u, index: gi, unit: unit, total: set.total[gi] * unit, weight: set.total[gi], single: set.single,
		scanMost: engine.ScanMost,
		peers:    make([]state, len(members)), cold: make([]cold, len(members))}
	for i := range members {
		g.configure(i, &members[i], s.comparesFrees() || u.record != nil)
	}
	if len(members) > g.scanMost {
		g.queues = newQueues(&g)
	}
	if s.listens() {
		g.times = make([]Times, len(members))
	}
	return g
}

// configure gives peer i its configuration and the state of a new peer. attended: every
// free of it takes the lock.
func (g *Group) configure(i int, m *member, attended bool) {
	p := &g.peers[i]
	p.step = int32(g.unit)
	p.weight = int64(m.Weight) * g.unit
	p.ew = p.weight
	p.failTimeout = int64(m.FailTimeout / g.up.resolution)
	p.slot = none
	p.load.Store(flags(m, attended))
	g.cold[i] = cold{
		drain: m.Drain && !m.Down, member: m,
		// No count comes near these bounds, so larger limits are the same.
		maxConns: uint32(min(uint64(m.MaxConns), math.MaxUint32)),
		maxFails: uint32(min(uint64(m.MaxFails), maxFailCount+1)),
	}
	if m.MaxFails > 0 {
		g.cold[i].penalty = int64(m.Weight/m.MaxFails) * g.unit
	}
	if h := g.up.remedies; h != nil {
		h.configure(g, i)
	}
}

// flags is the word of an idle peer. A peer that is wanted empty is watched.
func flags(m *member, attended bool) uint64 {
	w := uint64(0)
	if m.Down || m.Drain {
		w |= down | locked
	}
	if m.MaxConns > 0 {
		w |= limited
	}
	if attended {
		w |= locked
	}
	return w
}

// inherit gives peer i the state of the peer j of the list from. after / before
// is how much the usable weights of its group have become less.
func (g *Group) inherit(i int, from *Group, j int, after, before int64) {
	p, was := &g.peers[i], &from.peers[j]
	p.slot, p.checked = was.slot, was.checked
	p.gets = was.gets
	c, past := &g.cold[i], &from.cold[j]
	c.accessed, c.counts, c.attached = past.accessed, past.counts, past.attached
	if from.times != nil {
		*g.Times(i) = from.times[j]
	}
	w := was.load.moved()
	judged := w
	if c.maxFails != past.maxFails {
		judged = judge(w, c.maxFails)
	}
	if h := g.up.remedies; h != nil {
		judged = h.inherit(g, i, from, j, w, judged)
	}
	p.load.Store(p.load.Load() | judged)
	if was.ew != was.weight {
		p.ew = min(was.ew, p.weight)
	}
	if from.index != g.index {
		return // a current weight means something within its own group only
	}
	p.cw = from.currentWeight(j)
	if p.weight != was.weight {
		p.cw = scaled(p.cw, p.weight, was.weight)
	} else {
		p.cw = scaled(p.cw, after, before)
	}
}

// judge is the word of a peer whose max_fails has become most.
func judge(w uint64, most uint32) uint64 {
	if most == 0 || failsOf(w) < most {
		return w &^ out
	}
	return w | out
}

// remove takes the peers that no list has any more out of the old groups. Those that
// requests still hold go to the list of removed ones; the idle ones, which are returned,
// leave only what they have counted.
func (u *Upstream) remove(old *[3]Group, removedNow []place) []idle {
	var list []idle
	held := Group{up: u, index: removed, unit: u.remedies.unit()}
	move := func(g *Group, i int) {
		p := &g.peers[i]
		w := p.load.moved()
		if p.conns(w) == 0 {
			u.past.add(g.counts(i, w))
			list = append(list, g.idle(i, true))
			return
		}
		held.peers = append(held.peers, state{weight: p.weight, ew: p.ew, checked: p.checked,
			failTimeout: p.failTimeout, gets: p.gets, slot: p.slot, step: p.step})
		held.peers[len(held.peers)-1].load.Store(w | down | locked)
		held.cold = append(held.cold, g.cold[i])
		held.times = append(held.times, g.timesOf(i))
	}
	for i := range old[removed].peers {
		if g := &old[removed]; g.Conns(i) > 0 {
			move(g, i)
		} else {
			u.past.add(g.counts(i, g.peers[i].load.Load())) // its last Free has reported it
		}
	}
	for _, at := range removedNow {
		move(&old[at.group], int(at.index))
	}
	u.groups[removed] = held
	return list
}

// assignSlots gives new peers the slots that are free, and notes where all are.
func (u *Upstream) assignSlots(p *plan) {
	set, used := p.set, p.used
	for gi := range u.groups {
		for i := range u.groups[gi].peers {
			if slot := u.groups[gi].peers[i].slot; slot >= 0 {
				used[slot] = true
			}
		}
	}
	slot := 0
	for _, f := range p.fresh {
		for used[slot] {
			slot++
		}
		used[slot] = true
		u.groups[f.group].peers[f.index].slot = int32(slot)
		set.born[slot] = set.version
		set.slots = max(set.slots, slot+1)
	}
	set.born = set.born[:set.slots]
	for slot := range set.born {
		if !used[slot] {
			set.born[slot] = set.version // to have tried it means nothing
		}
	}
	u.places = p.places[:set.slots]
	for gi := range u.groups {
		for i := range u.groups[gi].peers {
			u.places[u.groups[gi].peers[i].slot] = place{int8(gi), int32(i)}
		}
	}
}

// closed returns the idle peers that are down or draining now, and were not before.
func (u *Upstream) closed(p *plan) []idle {
	var list []idle
	for gi := range p.from {
		g := &u.groups[gi]
		for i, at := range p.from[gi] {
			if w := g.peers[i].load.Load(); at == nowhere || w&down == 0 || g.peers[i].conns(w) > 0 {
				continue
			}
			if m := &p.before.groups[at.group][at.index]; !m.Down && !m.Drain {
				list = append(list, g.idle(i, false))
			}
		}
	}
	return list
}

// scaled is v * a / b, towards zero, without overflow in between; v where that is too
// large a number. b is 0 only where a is.
func scaled(v, a, b int64) int64 {
	if a == b {
		return v
	}
	size := uint64(v)
	if v < 0 {
		size = -size
	}
	hi, lo := bits.Mul64(size, uint64(a))
	if hi >= uint64(b) {
		return v
	}
	size, _ = bits.Div64(hi, lo, uint64(b))
	switch {
	case size > math.MaxInt64:
		return v
	case v < 0:
		return -int64(size)
	}
	return int64(size)
}
