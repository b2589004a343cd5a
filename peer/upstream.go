package peer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/internal/engine"
)

// Options are what an upstream takes from outside. The zero value, and a nil
// *Options, are the defaults.
type Options struct {
	// Clock returns the time since the Unix epoch. It runs inside the
	// upstream's lock and must not call the upstream. nil: the wall time at
	// construction plus the monotonic time since, so that a step of the wall
	// clock changes nothing.
	Clock func() time.Duration
	// Source is the source of random numbers; it too runs inside the lock and
	// needs none of its own. Same seed, same picks. nil: seeded per process.
	Source rand.Source
	// Resolution is the unit in which failures are timed. 0: one second, as
	// in nginx. A finer one allows finer fail timeouts; from 1 ms to 1 s.
	Resolution time.Duration
}

// Upstream is the peers of one upstream with their state: it picks, takes and
// frees them as nginx does, and nothing else. Goroutines may share it.
type Upstream struct {
	mu         sync.Mutex
	clock      func() time.Duration
	source     rand.Source
	resolution time.Duration
	set        atomic.Pointer[Set]
	selector   Selector
	events     Events // the selector's, or nil
	binder     Binder // the selector's, or nil
	groups     [2]Group
	places     []place // by slot
}

// New makes an upstream. The error is a *ConfigError that names the server, the
// field and its value, or what the method's Build returned. A nil method is
// round robin.
func New(servers []Server, m Method, o *Options) (*Upstream, error) {
	if o == nil {
		o = &Options{}
	}
	u := &Upstream{clock: o.Clock, source: o.Source, resolution: o.Resolution}
	switch {
	case u.resolution == 0:
		u.resolution = time.Second
	case u.resolution < time.Millisecond || u.resolution > time.Second || time.Second%u.resolution != 0:
		return nil, &ConfigError{Server: -1, Field: "Resolution", Value: o.Resolution,
			Reason: "must divide a second, and be at least 1 ms"}
	}
	if u.clock == nil {
		u.clock = wallClock()
	}
	if u.source == nil {
		u.source = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	set, err := newSet(servers, u.resolution)
	if err != nil {
		return nil, err
	}
	u.selector = plain{}
	if m != nil {
		if u.selector, err = m.Build(set); err != nil {
			return nil, err
		}
	}
	u.events, _ = u.selector.(Events)
	u.binder, _ = u.selector.(Binder)
	u.install(set)
	return u, nil
}

// place is where the peer of a slot stands: list order may change while
// requests hold slots.
type place struct {
	group int8
	index int32
}

// install gives every peer of the set its fresh state.
func (u *Upstream) install(set *Set) {
	u.set.Store(set)
	u.places = make([]place, 0, set.slots)
	for gi := range u.groups {
		members := set.groups[gi]
		g := &u.groups[gi]
		*g = Group{up: u, index: gi, total: set.total[gi], single: set.single,
			peers: make([]state, len(members)), cold: make([]cold, len(members))}
		for i := range members {
			m := &members[i]
			p := &g.peers[i]
			p.ew, p.weight = int64(m.Weight), int64(m.Weight)
			p.failTimeout = int64(m.FailTimeout / u.resolution)
			// No count comes near these, so that greater ones are the same.
			p.maxConns = uint32(min(uint64(m.MaxConns), math.MaxUint32))
			p.maxFails = uint32(min(uint64(m.MaxFails), mostFail+1))
			p.slot = int32(len(u.places))
			p.load.Store(u.flags(m))
			g.cold[i] = cold{drain: m.Drain && !m.Down, member: m}
			u.places = append(u.places, place{int8(gi), int32(i)})
		}
		if len(members) > engine.ScanMost {
			g.queues = newQueues(g)
		}
	}
}

// flags is the word of an idle peer.
func (u *Upstream) flags(m *member) uint64 {
	w := uint64(0)
	if m.Down || m.Drain {
		w |= down
	}
	if m.MaxConns > 0 {
		w |= limited
	}
	if u.events != nil {
		w |= locked
	}
	return w
}

// plain is round robin without a method.
type plain struct{}

func (plain) Pick(g *Group, r *Request, now Now) int { return g.roundRobin(r, now) }

// Begin starts a request: it has tried nothing, and is in the primary group.
// ErrHeld if it still holds a peer.
func (u *Upstream) Begin(r *Request) error {
	if r.held {
		return ErrHeld
	}
	set := u.set.Load()
	r.up, r.group, r.payer = u, Primary, None
	r.Scratch = Scratch{}
	r.tried.reset(set.slots)
	r.tries = set.usable
	if r.MaxTries > 0 {
		r.tries = min(r.tries, r.MaxTries)
	}
	return nil
}

// Get picks a peer for r and takes it. ErrNoLivePeers if there is none;
// ErrNotBegun and ErrHeld for a wrong order of calls. It does not look at
// Tries: whether another peer is asked is the caller's to decide.
func (u *Upstream) Get(r *Request) error {
	switch {
	case r.up != u:
		return ErrNotBegun
	case r.held:
		return ErrHeld
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	g, i := u.pick(r, now)
	if i < 0 {
		return ErrNoLivePeers
	}
	g.take(i, r, now)
	if u.events != nil {
		u.events.Taken(g, r, i, now)
	}
	return nil
}

// pick asks the method in the request's group, and then in the backup group,
// to which a request moves for good.
func (u *Upstream) pick(r *Request, now Now) (*Group, int) {
	sel := u.selector
	for {
		g := &u.groups[r.group]
		r.payer = None
		if u.binder != nil {
			r.payer = u.binder.Bind(g, r, now)
		}
		i := sel.Pick(g, r, now)
		if i == RoundRobin {
			sel = plain{}
			i = g.roundRobin(r, now)
		}
		if i != None || r.group == Backup || u.groups[Backup].Len() == 0 {
			return g, i
		}
		r.group = Backup
		r.tried.clear()
	}
}

// Free returns the peer that r holds. ErrNotHeld, with nothing changed, if it
// holds none.
func (u *Upstream) Free(r *Request, o Outcome) error {
	if o > Abandoned {
		return fmt.Errorf("%w: %d", ErrOutcome, o)
	}
	if err := u.holds(r); err != nil {
		return err
	}
	if o == OK && r.at.load.freeAlone() {
		r.release(u.set.Load())
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	g, i := u.peer(r.slot)
	if u.events != nil {
		u.events.Freed(g, r, i, o, now)
	}
	g.free(i, o, now)
	r.release(u.set.Load())
	return nil
}

// Connected tells that the connection to the held peer stands. In stream the
// peer is live again from now on, if it was taken more than its fail timeout
// after its last failure (docs/parity.md, section 10).
func (u *Upstream) Connected(r *Request) error {
	return u.tell(r, func(g *Group, i int, now Now) {
		if r.Stream {
			g.alive(i)
		}
		if u.events != nil {
			u.events.Connected(g, r, i, now)
		}
	})
}

// FirstByte tells that the held peer has sent its first byte (stream).
func (u *Upstream) FirstByte(r *Request) error {
	return u.tell(r, func(g *Group, i int, now Now) {
		if u.events != nil {
			u.events.FirstByte(g, r, i, now)
		}
	})
}

// Header tells that the held peer's response header has arrived (http).
func (u *Upstream) Header(r *Request) error {
	return u.tell(r, func(g *Group, i int, now Now) {
		if u.events != nil {
			u.events.Header(g, r, i, now)
		}
	})
}

// tell hands an event of the held peer on, under the lock.
func (u *Upstream) tell(r *Request, event func(g *Group, i int, now Now)) error {
	if err := u.holds(r); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	g, i := u.peer(r.slot)
	event(g, i, now)
	return nil
}

// holds refuses a request that was not begun here, or holds no peer.
func (u *Upstream) holds(r *Request) error {
	switch {
	case r.up != u:
		return ErrNotBegun
	case !r.held:
		return ErrNotHeld
	}
	return nil
}

// peer finds the peer of a slot.
func (u *Upstream) peer(slot int32) (*Group, int) {
	p := u.places[slot]
	return &u.groups[p.group], int(p.index)
}
