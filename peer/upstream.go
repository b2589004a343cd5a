package peer

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/internal/oplog"
	"github.com/trunklb/trunk/internal/wallclock"
)

// Options are what an upstream takes from outside. The zero value, and a nil
// *Options, are the defaults.
type Options struct {
	// Clock returns the time since the Unix epoch. It must not call the upstream, and
	// goroutines that share the upstream call it at the same time. nil: the wall time at
	// construction plus the monotonic time since, so that a step of the wall
	// clock changes nothing.
	Clock func() time.Duration
	// Source is the source of random numbers; it too runs inside the lock and
	// needs none of its own. Same seed, same picks. nil: seeded per process.
	Source rand.Source
	// Policy changes what a failure costs a peer, and how it comes back. The zero
	// value is nginx's way.
	Policy Policy
	// RandomStart begins at a random point of the cycle of picks, and goes on
	// exactly from there, so that many fresh processes do not all begin with
	// the first peer. The point is drawn from the whole cycle, which has sum of
	// weights / greatest common divisor picks, or from the first 131,072.
	RandomStart bool
	// Attach makes what Request.Attached returns for a peer, such as the
	// connections to it. It is called once for each peer that is new, outside
	// the lock, before any request can get the peer. nil: nothing is attached.
	Attach func(Server) any
	// OnEvent is called with each event of the peers and the set, in order, outside the
	// lock, by one goroutine at a time: one of those that call the upstream.
	// It may call the upstream. A slow one delays only that caller, while up to
	// 1024 events wait; what finds no room is counted (Event.Dropped,
	// Snapshot.EventsDropped). A panic of it ends here: it is counted
	// (Snapshot.HookPanics), and the next event is reported as usual. nil: events
	// are discarded, and cost nothing.
	OnEvent func(Event)
	// OnIdle is called when no request holds a peer any more that was removed, or
	// is down or draining. attached is what Attach has made for it; one that was removed
	// is gone. It runs outside the lock, in the goroutine whose Free or
	// Update made it so. nil: it is not called.
	OnIdle func(p Peer, attached any, removed bool)
	// Record, a *recording.Writer, receives everything that is asked of the upstream, so
	// that it can be repeated. It costs much: each operation takes the lock and looks at
	// every peer, and in round robin a get changes them all. nil: nothing is
	// recorded, and it costs nothing.
	Record oplog.Recorder[Method, Policy, *Set, State]
	// Resolution is the unit in which failures are timed. 0: one second, as
	// in nginx. A finer one allows finer fail timeouts; from 1 ms to 1 s.
	Resolution time.Duration
}

// Upstream is the peers of one upstream with their state: it picks, takes and
// frees them as nginx does, and nothing else. Goroutines may share it.
type Upstream struct {
	clock      func() time.Duration
	source     rand.Source
	resolution time.Duration
	policy     Policy
	remedies   *remedies // of the policy; nil: nginx's way
	method     Method
	attach     func(Server) any
	onIdle     func(Peer, any, bool)
	watched    bool     // there is a journal or a record to report
	journal    *journal // nil: there is no OnEvent
	record     *record  // nil: likewise
	name       string   // of the method
	set        atomic.Pointer[Set]
	listens    atomic.Bool // so does the selector

	mu       sync.Mutex    // held for what follows
	latest   time.Duration // the time that was used last
	timed    bool          // requests have to know the times of the peers that they hold
	selector Selector
	groups   [3]Group // Primary, Backup and removed
	places   []place  // by slot
	// What Snapshot reports: how often requests asked again, and found no peer, and
	// what peers had counted that are gone.
	retries, noLivePeers uint64
	past                 Counts

	updating sync.Mutex // one Update at a time
}

// New makes an upstream. The error is a *ConfigError that names the server, the
// field and its value, or what the method's Build returned. A nil method is
// round robin.
func New(servers []Server, m Method, o *Options) (*Upstream, error) {
	if o == nil {
		o = &Options{}
	}
	u := &Upstream{clock: o.Clock, source: o.Source}
	var err error
	if u.resolution, err = checkResolution(o.Resolution); err != nil {
		return nil, err
	}
	if err := o.Policy.check(); err != nil {
		return nil, err
	}
	u.policy, u.remedies = o.Policy, newRemedies(o.Policy)
	if u.clock == nil {
		u.clock = wallclock.New()
	}
	if u.source == nil {
		u.source = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	u.method, u.attach, u.onIdle = m, o.Attach, o.OnIdle
	if u.attach == nil {
		u.attach = func(Server) any { return nil }
	}
	if u.onIdle == nil {
		u.onIdle = func(Peer, any, bool) {}
	}
	if v := reflect.ValueOf(m); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &ConfigError{Server: -1, Field: "Method", Value: fmt.Sprintf("%T", m), Reason: "is a nil pointer"}
	}
	u.name = Describe(m).Name
	if o.OnEvent != nil {
		u.journal = &journal{hook: o.OnEvent}
	}
	if o.Record != nil {
		u.record = newRecord(u, o.Record)
	}
	u.watched = u.journal != nil || u.record != nil
	if err := u.Update(servers); err != nil {
		return nil, err
	}
	if o.RandomStart {
		u.randomStart()
	}
	if u.record != nil {
		if err := u.record.start(o.RandomStart); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// Begin starts a request: it has tried nothing, and is in the primary group.
// ErrHeld if it still holds a peer; a *ConfigError if MaxTries is negative.
func (u *Upstream) Begin(r *Request) error {
	switch {
	case r.held:
		return ErrHeld
	case r.MaxTries < 0:
		return &ConfigError{Server: -1, Field: "Request.MaxTries", Value: r.MaxTries, Reason: "must be at least 0; 0 means no limit"}
	}
	if u.record != nil {
		u.record.begin(r)
		u.report()
		return nil
	}
	r.begin(u, u.set.Load())
	return nil
}

// Get picks a peer for r and takes it. ErrNoLivePeers if there is none;
// ErrNotBegun and ErrHeld for a wrong order of calls. It does not look at
// Tries: whether another peer is asked is the caller's to decide.
func (u *Upstream) Get(r *Request) error {
	err := u.get(r, nil)
	if u.watched {
		u.report()
	}
	return err
}

// Explain is Get, and writes into d how it was decided, if d is not nil. An
// earlier Decision's memory is used again.
func (u *Upstream) Explain(r *Request, d *Decision) error {
	err := u.get(r, d)
	if u.watched {
		u.report()
	}
	return err
}

func (u *Upstream) get(r *Request, d *Decision) error {
	switch {
	case r.up != u:
		return ErrNotBegun
	case r.held:
		return ErrHeld
	}
	now := u.lock()
	defer u.mu.Unlock()
	if set := u.set.Load(); r.set != set {
		r.moveTo(set)
	}
	r.gets++
	if r.BackupTry {
		u.keepBackup(r, now)
	}
	if d != nil {
		d.before(u, r, now)
	}
	g, i := u.pick(r, now)
	if d != nil {
		d.after(u, r, g, i, now)
	}
	if r.gets > 1 {
		u.retries++
	}
	if i < 0 {
		u.noLivePeers++
		u.noteBusy(r, now)
	} else {
		g.take(i, r, now)
		if u.timed {
			r.time(now)
		}
		if u.selector.Taken != nil {
			u.selector.Taken(g, r, i, now)
		}
	}
	if u.record != nil {
		u.record.got(r, g, i, now)
	}
	if i < 0 {
		return ErrNoLivePeers
	}
	return nil
}

// noteBusy writes the event of a request that found no peer. Nothing has
// changed, so that the verdicts are what they were.
func (u *Upstream) noteBusy(r *Request, now Now) {
	if u.journal == nil {
		return
	}
	d := &Decision{}
	d.before(u, r, now)
	d.after(u, r, nil, None, now)
	u.journal.write(Event{Kind: NoLivePeers, Time: wallTime(now.Time), Decision: d})
}

// pick asks the method in the request's group, and then in the backup group,
// to which a request moves until it ends.
func (u *Upstream) pick(r *Request, now Now) (*Group, int) {
	choose := u.selector.Pick
	r.fellBack, r.Rule = false, Undecided
	for {
		g := &u.groups[r.group]
		r.payer = None
		if u.selector.Bind != nil {
			r.payer = u.selector.Bind(g, r, now)
		}
		if h := u.remedies; h != nil {
			h.beforePick(g, now)
		}
		i := choose(g, r, now)
		if i == RoundRobin {
			choose, r.fellBack = PickAll, true
			i = PickAll(g, r, now)
		}
		if i != None {
			return g, i
		}
		if r.group == Backup || u.groups[Backup].Len() == 0 {
			if h := u.remedies; h != nil {
				return h.leastBad(u, r, now)
			}
			return nil, None
		}
		// nginx clears the tried set here. Slots are different peers in
		// the two groups, so there is nothing to clear.
		r.group = Backup
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
		// Nothing else would have changed: no failures to clear, no limit, and
		// nothing that watches or compares. The peer counts this request out at the exchange
		// of its word, wherever that falls among what others do under the lock.
		r.release(u.set.Load(), false)
		return nil
	}
	if p := u.freeLocked(r, o); p != nil {
		u.onIdle(p.Peer, p.attached, p.removed)
	}
	if u.watched {
		u.report()
	}
	return nil
}

// freeLocked frees under the lock, and returns the peer if that made it idle
// as it was wanted, else nil: an idle is large.
func (u *Upstream) freeLocked(r *Request, o Outcome) *idle {
	now := u.lock()
	defer u.mu.Unlock()
	g, i := u.peer(r.slot)
	if u.selector.Freed != nil {
		u.selector.Freed(g, r, i, o, now)
	}
	g.free(i, o, now)
	set := u.set.Load()
	if r.set != set {
		r.moveTo(set) // whether there are tries left is asked before the next Get
	}
	r.release(set, g.index == removed)
	if u.record != nil {
		u.record.freed(r, o, now)
	}
	if w := g.peers[i].load.Load(); w&down != 0 && g.Conns(i) == 0 {
		g.note(PeerIdle, i, g.peers[i].ew, now)
		p := g.idle(i, g.index == removed)
		return &p
	}
	return nil
}

// Connected reports that the connection to the held peer is established. In stream the
// peer is live again from now on, if it was taken more than its fail timeout
// after its last failure (docs/parity.md, section 10).
func (u *Upstream) Connected(r *Request) error {
	return u.progress(r, oplog.Connected, func(g *Group, i int, now Now) {
		if r.Stream {
			g.alive(i, now)
		}
		if u.selector.Connected != nil {
			u.selector.Connected(g, r, i, now)
		}
	})
}

// FirstByte reports that the held peer has sent its first byte (stream).
func (u *Upstream) FirstByte(r *Request) error {
	return u.progress(r, oplog.FirstByte, func(g *Group, i int, now Now) {
		if u.selector.FirstByte != nil {
			u.selector.FirstByte(g, r, i, now)
		}
	})
}

// Header reports that the held peer's response header has arrived (http).
func (u *Upstream) Header(r *Request) error {
	return u.progress(r, oplog.Header, func(g *Group, i int, now Now) {
		if u.selector.Header != nil {
			u.selector.Header(g, r, i, now)
		}
	})
}

// progress passes an event of the held peer on, under the lock.
func (u *Upstream) progress(r *Request, kind oplog.Kind, event func(g *Group, i int, now Now)) error {
	if err := u.holds(r); err != nil {
		return err
	}
	u.tellLocked(r, kind, event)
	if u.watched {
		u.report()
	}
	return nil
}

func (u *Upstream) tellLocked(r *Request, kind oplog.Kind, event func(g *Group, i int, now Now)) {
	now := u.lock()
	defer u.mu.Unlock()
	g, i := u.peer(r.slot)
	event(g, i, now)
	if u.record != nil {
		u.record.event(kind, r, now)
	}
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
