package peer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/internal/oplog"
)

// ErrRecordingFull ends a recording whose Recorder was slower than the
// operations came.
var ErrRecordingFull = errors.New("trunk: the recording has ended: operations came faster than they were written")

// recordBound bounds what waits for the Recorder, in units of about 128 bytes.
const recordBound = 1 << 17

// record notes operations for the Recorder: like the journal it is written
// under the upstream's lock and read outside of it, but it loses nothing until
// it ends.
type record struct {
	up  *Upstream
	to  recorder
	any atomic.Bool // something waits

	// From here on under the upstream's lock.
	started bool
	err     error // why it has ended
	waiting batch
	cost    int // of waiting
	states  [2][]State
	last    time.Duration
	draws   []uint64 // since the last operation
	begun   uint64   // number of requests

	writing sync.Mutex
	spare   batch // under writing
}

// batch is operations with the memory of their changes.
type batch struct {
	ops     []operation
	changes []change
}

// noted is what was last noted of a request.
type noted struct {
	in     *record
	number uint64
	given  oplog.Given
}

// newRecord makes the record of an upstream that is being made, and lets it see
// the random numbers.
func newRecord(u *Upstream, to recorder) *record {
	rec := &record{up: u, to: to}
	u.source = drawn{u.source, rec}
	return rec
}

// drawn is a source that is watched.
type drawn struct {
	rand.Source
	by *record
}

func (d drawn) Uint64() uint64 {
	n := d.Source.Uint64()
	if d.by.err == nil {
		d.by.draws = append(d.by.draws, n)
	}
	return n
}

// start begins the recording of an upstream that is not in use yet.
func (rec *record) start(randomStart bool) error {
	u := rec.up
	rec.renew(u.set.Load())
	origin := origin{
		Method: u.method, Binds: u.selector.Bind != nil, Policy: u.policy, Resolution: u.resolution,
		Set: u.set.Load(), Changed: rec.changed(), RandomStart: randomStart, Draws: rec.draws, Flush: rec.flush,
	}
	err := withoutPanic(func() error { return rec.to.Start(origin) })
	rec.started, rec.draws = true, nil
	return err
}

// begin begins r under the lock, so that the set it begins with is that of this
// place in the recording.
func (rec *record) begin(r *Request) {
	rec.up.mu.Lock()
	defer rec.up.mu.Unlock()
	r.begin(rec.up, rec.up.set.Load())
	rec.begun++
	op := operation{Kind: oplog.Begin, MaxTries: r.MaxTries}
	if r.noted == nil || r.noted.in != rec {
		r.noted = &noted{in: rec}
	} else {
		op.Over = r.noted.number
	}
	r.noted.number, r.noted.given = rec.begun, oplog.Given{}
	rec.add(op, r, rec.last)
}

// got notes a get, of peer i of g or of none.
func (rec *record) got(r *Request, g *Group, i int, now Now) {
	op := operation{Kind: oplog.Get, Index: i}
	if i >= 0 {
		op.Group = g.index
	}
	rec.add(op, r, now.Time)
}

// event notes an event of the held peer.
func (rec *record) event(kind oplog.Kind, r *Request, now Now) {
	rec.add(operation{Kind: kind, Since: now.Milli - r.Scratch.Start}, r, now.Time)
}

// freed notes a free.
func (rec *record) freed(r *Request, o Outcome, now Now) {
	rec.add(operation{Kind: oplog.Free, Outcome: uint8(o), Since: now.Milli - r.Scratch.Start}, r, now.Time)
}

// updated notes a new set.
func (rec *record) updated(set *Set, now Now) {
	if rec.started { // New makes its first set in the same way
		rec.renew(set)
		rec.add(operation{Kind: oplog.Update, Set: set}, nil, now.Time)
	}
}

// add completes an operation and lets it wait.
func (rec *record) add(op operation, r *Request, now time.Duration) {
	if rec.err != nil {
		return
	}
	rec.last, op.Time = now, now
	if r != nil {
		given := oplog.Given{Key: r.Key, Client: r.Client, Hint: r.Hint, Stream: r.Stream, BackupTry: r.BackupTry}
		op.Request, op.Given, op.Was = r.noted.number, given, r.noted.given
		op.Tries, op.GaveBack = r.tries, r.gaveBack
		r.noted.given, r.gaveBack = given, 0
	}
	for _, n := range rec.draws {
		op.Draws = append(op.Draws, uint32(n>>33)) // as Group.Draw
	}
	rec.draws = rec.draws[:0]
	if op.Kind != oplog.Begin {
		op.Changed = rec.changed()
	}
	rec.cost += 4 + 2*len(op.Changed) + (len(op.Given.Key)+len(op.Given.Hint))/128
	if rec.cost > recordBound && len(rec.waiting.ops) > 0 {
		rec.err = ErrRecordingFull
		return
	}
	rec.waiting.ops = append(rec.waiting.ops, op)
	rec.any.Store(true)
}

// renew forgets the states: all peers of the set are as new.
func (rec *record) renew(set *Set) {
	for gi := range rec.states {
		rec.states[gi] = make([]State, set.Len(gi))
		for i := range rec.states[gi] {
			rec.states[gi][i] = State{EffectiveWeight: int64(set.Server(gi, i).Weight)}
		}
	}
}

// changed returns the peers whose state has changed since the last call.
func (rec *record) changed() []change {
	first := len(rec.waiting.changes)
	for gi := range rec.states {
		g := &rec.up.groups[gi]
		for i := range g.peers {
			if now := g.state(i); now != rec.states[gi][i] {
				rec.waiting.changes = append(rec.waiting.changes, change{Group: gi, Index: i, Was: rec.states[gi][i], Is: now})
				rec.states[gi][i] = now
			}
		}
	}
	return rec.waiting.changes[first:len(rec.waiting.changes):len(rec.waiting.changes)]
}

// maxBatches is how many batches a caller hands on. What comes in the meantime is
// for the caller that brought it, or the next one: no caller is delayed indefinitely.
const maxBatches = 4

// drain hands on what waits, outside the lock, unless another goroutine is doing so.
func (rec *record) drain() {
	for range maxBatches {
		if !rec.any.Load() || !rec.writing.TryLock() {
			return
		}
		rec.handOn()
	}
}

// flush is Origin.Flush.
func (rec *record) flush() error {
	rec.writing.Lock()
	rec.handOn()
	rec.up.mu.Lock()
	defer rec.up.mu.Unlock()
	return rec.err
}

// handOn gives the Recorder what waits. The caller has locked writing.
func (rec *record) handOn() {
	defer rec.writing.Unlock()
	b := rec.takeOut()
	if len(b.ops) == 0 {
		return
	}
	if err := withoutPanic(func() error { return rec.to.Record(b.ops) }); err != nil {
		rec.end(err)
	}
	clear(b.ops) // strings and sets are not kept alive
	rec.spare = b
}

// takeOut exchanges what waits for an empty batch.
func (rec *record) takeOut() batch {
	rec.up.mu.Lock()
	defer rec.up.mu.Unlock()
	b := rec.waiting
	rec.waiting = batch{rec.spare.ops[:0], rec.spare.changes[:0]}
	rec.spare, rec.cost = batch{}, 0
	rec.any.Store(false)
	return b
}

// end ends the recording.
func (rec *record) end(err error) {
	rec.up.mu.Lock()
	defer rec.up.mu.Unlock()
	if rec.err == nil {
		rec.err = err
	}
	rec.waiting, rec.draws = batch{}, nil
	rec.any.Store(false)
}

// withoutPanic makes a panic of the Recorder an error: recording must not hurt who is
// recorded.
func withoutPanic(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("trunk: the recorder panicked: %v", v)
		}
	}()
	return call()
}
