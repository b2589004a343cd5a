package peer

import "sync/atomic"

// journalSize bounds the events that wait for the hook.
const journalSize = 256

// journal hands events to the user's hook: they are written in order under
// the upstream's lock, and read outside of it, by one caller at a time. A slow
// hook delays the caller that reads; a panic of it is that caller's, after whom the next
// goes on. Events that find no room are counted.
type journal struct {
	hook    func(Event)
	reading atomic.Bool
	waiting atomic.Int32

	ring    [journalSize]Event // from here on under the upstream's lock
	first   int
	dropped uint64
}

// write adds an event.
func (j *journal) write(e Event) {
	n := int(j.waiting.Load())
	if n == journalSize {
		j.dropped++
		return
	}
	e.Dropped, j.dropped = j.dropped, 0
	j.ring[(j.first+n)%journalSize] = e
	j.waiting.Add(1)
}

// next takes the oldest event out.
func (u *Upstream) nextEvent() (e Event, ok bool) {
	j := u.journal
	u.mu.Lock()
	defer u.mu.Unlock()
	if j.waiting.Load() == 0 {
		return e, false
	}
	e = j.ring[j.first]
	j.ring[j.first] = Event{}
	j.first = (j.first + 1) % journalSize
	j.waiting.Add(-1)
	return e, true
}

// report writes what was recorded, and gives the hook what waits for it, outside
// the lock, unless somebody is doing so. It stops after as many events as there
// is room for: more have come in the meantime, and who brought them reports them.
func (u *Upstream) report() {
	if u.record != nil {
		u.record.drain()
	}
	j := u.journal
	if j == nil {
		return
	}
	for range journalSize {
		if j.waiting.Load() == 0 || !j.reading.CompareAndSwap(false, true) {
			return
		}
		u.callHook()
	}
}

func (u *Upstream) callHook() {
	// A panic of the hook passes on to the caller whose call it was; nothing
	// of the upstream is held.
	defer u.journal.reading.Store(false)
	if e, ok := u.nextEvent(); ok {
		u.journal.hook(e)
	}
}

// note writes an event of peer i, if anybody wants to know.
func (g *Group) note(kind EventKind, i int, before int64, now Now) {
	j := g.up.journal
	if j == nil {
		return
	}
	p := &g.peers[i]
	w := p.load.Load()
	j.write(Event{Kind: kind, Time: now.Time, Peer: g.peer(i), Fails: int64(failsOf(w)), Conns: int64(p.conns(w)),
		EffectiveBefore: before / g.unit, EffectiveAfter: p.ew / g.unit, Removed: g.index == leaving})
}
