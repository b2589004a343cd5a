package peer

import (
	"math"
	"math/big"
	"slices"

	"github.com/trunklb/trunk/internal/engine"
)

// place is where the peer of a slot stands. The list order may change while
// requests hold slots.
type place struct {
	group int8
	index int32
}

// leaving is the list of the peers that were removed while requests held them.
const leaving = 2

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
// is removed is forgotten when its last request ends; added again it is new.
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
	if before != nil && slices.Equal(before.given, servers) {
		return nil, nil
	}
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
	return u.exchange(before, set, selector, u.attachments(before, set)), nil
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

// attachments makes what is attached to the peers that are new in a set, in
// list order.
func (u *Upstream) attachments(before, set *Set) (list []any) {
	known := byAddr(before)
	for gi := range set.groups {
		for _, m := range set.groups[gi] {
			if _, ok := known.take(m.Addr); !ok {
				list = append(list, u.attach(m.Server))
			}
		}
	}
	return list
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
func (u *Upstream) exchange(before, set *Set, selector Selector, attached []any) []idle {
	now := u.lock()
	defer u.mu.Unlock()
	u.selector = selector
	u.listens.Store(selector.listens())
	u.timed = selector.listens() || u.record != nil

	old := u.groups
	known := byAddr(before)
	var fresh []place
	for gi := range set.groups {
		u.groups[gi] = u.newGroup(set, gi)
		g := &u.groups[gi]
		after, sum := set.usable[gi].weight, before.usable[gi].weight
		if after > sum {
			after, sum = 1, 1
		}
		for i := range g.peers {
			if from, ok := known.take(set.groups[gi][i].Addr); ok {
				g.inherit(i, &old[from.group], int(from.index), after, sum)
			} else {
				g.cold[i].attached = attached[len(fresh)]
				fresh = append(fresh, place{int8(gi), int32(i)})
			}
		}
	}
	gone := u.leave(&old, known)
	u.assignSlots(before, set, fresh)
	for gi := range set.groups {
		if g := &u.groups[gi]; len(g.peers) > g.scanMost {
			g.queues = newQueues(g)
		}
	}
	if h := u.remedies; h != nil && before.version > 0 {
		for _, f := range fresh {
			h.added(&u.groups[f.group], int(f.index), now)
		}
	}
	u.set.Store(set)
	gone = append(gone, u.emptied(before)...)
	if u.record != nil {
		u.record.updated(set, now)
	}
	if u.journal != nil && before.version > 0 {
		u.journal.write(Event{Kind: SetChanged, Time: wallTime(now.Time)})
		for _, p := range gone {
			u.journal.write(Event{Kind: PeerIdle, Time: wallTime(now.Time), Peer: p.Peer, Removed: p.removed})
		}
	}
	return gone
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
func (a addresses) take(addr string) (place, bool) {
	list := a[addr]
	if len(list) == 0 {
		return place{}, false
	}
	a[addr] = list[1:]
	return list[0], true
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
func (u *Upstream) newGroup(set *Set, gi int) Group {
	members := set.groups[gi]
	unit := u.remedies.unit()
	g := Group{up: u, index: gi, unit: unit, total: set.total[gi] * unit, weight: set.total[gi], single: set.single,
		scanMost: engine.ScanMost,
		peers:    make([]state, len(members)), cold: make([]cold, len(members))}
	for i := range members {
		g.configure(i, &members[i])
	}
	return g
}

// configure gives peer i its configuration and the state of a new peer.
func (g *Group) configure(i int, m *member) {
	p := &g.peers[i]
	p.step = int32(g.unit)
	p.weight = int64(m.Weight) * g.unit
	p.ew = p.weight
	p.failTimeout = int64(m.FailTimeout / g.up.resolution)
	p.slot = none
	p.load.Store(g.up.flags(m))
	g.cold[i] = cold{
		drain: m.Drain && !m.Down, member: m,
		// No count comes near these bounds, so greater limits are the same.
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
func (u *Upstream) flags(m *member) uint64 {
	w := uint64(0)
	if m.Down || m.Drain {
		w |= down | locked
	}
	if m.MaxConns > 0 {
		w |= limited
	}
	if u.selector.comparesFrees() || u.record != nil {
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
	c.accessed, c.times, c.counts, c.attached = past.accessed, past.times, past.counts, past.attached
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

// leave moves the old peers that no list has any more, but requests still hold,
// to the list of those that are leaving; it returns the others. What those counted
// goes into the totals.
func (u *Upstream) leave(old *[3]Group, rest addresses) []idle {
	var gone []idle
	list := Group{up: u, index: leaving, unit: u.remedies.unit()}
	move := func(g *Group, i int) {
		p := &g.peers[i]
		w := p.load.moved()
		if p.conns(w) == 0 {
			u.forgotten.add(g.counts(i, w))
			gone = append(gone, g.idle(i, true))
			return
		}
		list.peers = append(list.peers, state{weight: p.weight, ew: p.ew, checked: p.checked,
			failTimeout: p.failTimeout, gets: p.gets, slot: p.slot, step: p.step})
		list.peers[len(list.peers)-1].load.Store(w | down | locked)
		list.cold = append(list.cold, g.cold[i])
	}
	for i := range old[leaving].peers {
		if g := &old[leaving]; g.Conns(i) > 0 {
			move(g, i)
		} else {
			u.forgotten.add(g.counts(i, g.peers[i].load.Load()))
		}
	}
	// In list order: the events and the Snapshot tell of them.
	for gi := range old[:leaving] {
		for i := range old[gi].peers {
			if rest.takeAt(old[gi].cold[i].member.Addr, place{int8(gi), int32(i)}) {
				move(&old[gi], i)
			}
		}
	}
	u.groups[leaving] = list
	return gone
}

// assignSlots gives new peers the slots that nobody has, and notes where all are.
func (u *Upstream) assignSlots(before, set *Set, fresh []place) {
	set.version = before.version + 1
	set.slots = before.slots
	used := make([]bool, before.slots+len(fresh))
	for gi := range u.groups {
		for i := range u.groups[gi].peers {
			if slot := u.groups[gi].peers[i].slot; slot >= 0 {
				used[slot] = true
			}
		}
	}
	set.born = make([]int, len(used))
	copy(set.born, before.born)
	slot := 0
	for _, f := range fresh {
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
			set.born[slot] = set.version // who has tried it has tried nobody
		}
	}
	u.places = make([]place, set.slots)
	for gi := range u.groups {
		for i := range u.groups[gi].peers {
			u.places[u.groups[gi].peers[i].slot] = place{int8(gi), int32(i)}
		}
	}
}

// emptied returns the peers that the present set no longer lets anybody have, the
// one before did, and nobody holds.
func (u *Upstream) emptied(before *Set) []idle {
	var list []idle
	was := byAddr(before)
	for gi := range u.groups[:leaving] {
		g := &u.groups[gi]
		for i := range g.peers {
			at, ok := was.take(g.cold[i].member.Addr)
			if w := g.peers[i].load.Load(); !ok || w&down == 0 || g.peers[i].conns(w) > 0 {
				continue
			}
			if m := &before.groups[at.group][at.index]; !m.Down && !m.Drain {
				list = append(list, g.idle(i, false))
			}
		}
	}
	return list
}

// scaled is v * a / b, towards zero, without overflow in between; v where that is too
// great a number. b is 0 only where a is.
func scaled(v, a, b int64) int64 {
	if a == b {
		return v
	}
	x := new(big.Int).Mul(big.NewInt(v), big.NewInt(a))
	x.Quo(x, big.NewInt(b))
	if !x.IsInt64() {
		return v
	}
	return x.Int64()
}
