package peer

import (
	"sync/atomic"

	"github.com/trunklb/trunk/internal/guard"
)

// maxEvents bounds the events that wait for the hook.
const maxEvents = 1024

// journal hands events to the user's hook: they are written in order under
// the upstream's lock, and read outside of it, by one caller at a time. A slow
// hook delays the caller that reads, and a panic of one is recovered and counted. Events
// that find no room are counted.
type journal struct {
	hook    func(Event)
	panics  guard.Guard
	held    atomic.Int32 // Hold less Release
	reading atomic.Bool
	waiting atomic.Int32

	ring    []Event // from here on under the upstream's lock
	first   int
	dropped uint64 // since the last event that found room
	lost    uint64 // ever
}

// write adds an event.
func (j *journal) write(e Event) {
	n := int(j.waiting.Load())
	if n == maxEvents {
		j.dropped++
		j.lost++
		return
	}
	if n == len(j.ring) {
		j.grow()
	}
	e.Dropped, j.dropped = j.dropped, 0
	j.ring[(j.first+n)%len(j.ring)] = e
	j.waiting.Add(1)
}

// grow doubles a ring that is full: few upstreams ever need the whole of it.
func (j *journal) grow() {
	ring := make([]Event, max(16, 2*len(j.ring)))
	n := copy(ring, j.ring[j.first:])
	copy(ring[n:], j.ring[:j.first])
	j.ring, j.first = ring, 0
}

// nextEvent takes the oldest event out.
func (u *Upstream) nextEvent() (e Event, ok bool) {
	j := u.journal
	u.mu.Lock()
	defer u.mu.Unlock()
	if j.waiting.Load() == 0 {
		return e, false
	}
	e = j.ring[j.first]
	j.ring[j.first] = Event{}
	j.first = (j.first + 1) % len(j.ring)
	j.waiting.Add(-1)
	return e, true
}

func (u *Upstream) noteLocked(e Event) {
	now := u.lock()
	defer u.mu.Unlock()
	e.Time = wallTime(now.Time)
	u.journal.write(e)
}

// report writes what was recorded, and calls the hook with what waits for it, unless
// that is held.
func (u *Upstream) report() {
	if u.record != nil {
		u.record.drain()
	}
	if j := u.journal; j != nil && j.held.Load() == 0 {
		u.callHooks()
	}
}

// callHooks calls the hook with what waits for it, outside the lock, unless another goroutine is
// doing so. It stops after as many events as there is room for: more have come in
// the meantime, and who brought them reports them.
func (u *Upstream) callHooks() {
	j := u.journal
	for range maxEvents {
		if j.waiting.Load() == 0 || !j.reading.CompareAndSwap(false, true) {
			return
		}
		u.callHook()
	}
}

func (u *Upstream) callHook() {
	j := u.journal
	defer j.reading.Store(false) // also where the hook ends the goroutine
	defer j.panics.Recover()
	if e, ok := u.nextEvent(); ok {
		j.hook(e)
	}
}

// note writes an event of peer i, if there is a hook.
func (g *Group) note(kind EventKind, i int, before int64, now Now) {
	j := g.up.journal
	if j == nil {
		return
	}
	p := &g.peers[i]
	w := p.load.Load()
	j.write(Event{Kind: kind, Time: wallTime(now.Time), Peer: g.peer(i), Fails: int64(failsOf(w)), Conns: int64(p.conns(w)),
		EffectiveBefore: g.configured(before), EffectiveAfter: g.configured(p.ew), Removed: g.index == removed})
}
