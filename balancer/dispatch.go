package balancer

import (
	"errors"
	"time"

	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/peer"
)

// dispatch is one request on its way through an upstream: which peer it holds,
// what the others did, and whether another may be asked. Start and
// RoundTripper are two faces of it. It belongs to one goroutine at a time.
type dispatch struct {
	up  *Upstream
	req peer.Request
	// end is the peer that is held.
	end  *endpoint
	held bool
	// header says that the held peer's response header has come.
	header bool
	asked  bool
	// gets counts the peers that were got, but for those whose try was given back.
	gets int
	// first and since are when the first and the present peer were got, to the
	// header how long the present one took to answer; all of the clock.
	first, since, toHeader time.Duration
	// attempts are those that ended; they start in inline.
	attempts []Attempt
	inline   [2]Attempt
	log      *AttemptLog
	// decisions is called with the Decision of each peer; nil: they are not made.
	decisions func(*Decision)
	// logged is the place in log of the held peer's attempt.
	logged     int
	prev, next *dispatch // in end's list
}

// begin starts a request. The error is an *InputError.
func (d *dispatch) begin(up *Upstream, in Input, with *carry) error {
	d.up, d.log, d.decisions = up, with.log, with.decisions
	d.attempts = d.inline[:0]
	d.asked, d.gets = false, 0
	if up.inputs.client && !in.Client.IsValid() {
		return &InputError{Field: "Input.Client", Method: up.method.Name}
	}
	d.req.Key, d.req.Client, d.req.Hint = in.Key, in.Client.Unmap(), in.Hint
	d.req.MaxTries, d.req.BackupTry = up.retry.Tries, up.retry.KeepBackup
	return up.peers.Begin(&d.req)
}

// get picks and takes a peer. ErrNoLivePeers, which is noted as an attempt, if
// there is none.
func (d *dispatch) get() error {
	if d.up.closed.Load() {
		return ErrClosed
	}
	err := d.pick()
	if err != nil && d.asked && d.up.retry.Again && errors.Is(err, ErrNoLivePeers) {
		// All that are live were tried: the request begins again among them.
		if err = d.up.peers.Begin(&d.req); err == nil {
			err = d.pick()
		}
	}
	// Get has read the clock, or another request's has a moment later.
	d.since = time.Duration(d.up.now.Load())
	if !d.asked {
		d.asked, d.first = true, d.since
		d.up.budget.request(d.since)
	}
	if err != nil {
		d.note(Attempt{Addr: d.up.name, Outcome: Abandoned, Status: 502, Err: err})
		return err
	}
	d.end = d.req.Attached().(*endpoint)
	if !d.end.hold(d) { // Close came in between
		d.release()
		return ErrClosed
	}
	d.held, d.header, d.toHeader = true, false, 0
	d.gets++
	return nil
}

// gotHeader reports that the held peer has answered.
func (d *dispatch) gotHeader() {
	d.header = true
	if d.up.peers.Internal(glue.Key{}).Listens() {
		d.up.peers.Header(&d.req)
	}
}

// free returns the held peer. What it did is noted, if a is not nil, as *a, of
// which the caller has filled in kind, status and error.
func (d *dispatch) free(o Outcome, a *Attempt) {
	d.end.drop(d)
	d.held = false
	d.giveBack(o)
	if a != nil {
		a.Outcome = o
		d.fill(a)
		d.note(*a)
	}
}

// giveBack frees the peer, and lets Shutdown look again.
func (d *dispatch) giveBack(o Outcome) {
	d.up.peers.Free(&d.req, o)
	if d.up.closed.Load() {
		d.up.idles.wake()
	}
}

// release frees what is held Abandoned, and reports whether anything was: be it a
// peer of which a function of WithDecisions that panicked has kept us from knowing.
func (d *dispatch) release() bool {
	switch {
	case d.held:
		d.free(Abandoned, &Attempt{})
	case d.up != nil && d.req.Attached() != nil:
		d.giveBack(Abandoned)
	default:
		return false
	}
	return true
}

// fill completes an attempt by what is known of the held peer.
func (d *dispatch) fill(a *Attempt) {
	s := d.end.server()
	a.Addr, a.Name, a.Backup = s.Addr, s.Name, s.Backup
	a.Header, a.Duration = d.toHeader, d.up.clock()-d.since
}

// note adds an attempt to the lists.
func (d *dispatch) note(a Attempt) {
	d.attempts = append(d.attempts, a)
	d.log.add(a)
}

// may reports whether a request that failed by kind may go to another peer as
// far as kinds, tries and time say. A peer that is still held has its own try.
func (d *dispatch) may(k Kind) bool {
	r := &d.up.retry
	left := d.req.Tries()
	if d.held {
		left--
	}
	if r.Again {
		left = r.Tries - d.gets
	}
	return left > 0 && r.On&k != 0 && !r.Off && d.inTime()
}

// inTime reports whether Retry.Timeout lets the request be sent once more.
func (d *dispatch) inTime() bool {
	limit := d.up.retry.Timeout
	return limit == 0 || d.up.clock()-d.first < limit
}

// outcome says what a failure by kind means for the peer. passed says that the
// request goes to another.
func (d *dispatch) outcome(k Kind, passed bool) Outcome {
	counts := d.up.retry.Counts
	switch {
	case counts != 0 && counts&k != 0:
		return Failed
	case counts == 0 && (k&alwaysCounts != 0 || passed && k&noFailure == 0):
		return Failed
	case passed:
		return Next
	case k&alwaysCounts != 0:
		// It did not answer, but that is not to count: say nothing of it.
		return Abandoned
	}
	return OK
}

// deadlineCounts reports whether the held peer had time enough for the caller's
// deadline to be its own timeout.
func (d *dispatch) deadlineCounts() bool {
	least := d.up.retry.DeadlineCounts
	return least >= 0 && d.up.clock()-d.since >= least
}

// callerGone says what it means for the held peer that the caller went away, by cancel
// or by its deadline, before the answer.
func (d *dispatch) callerGone(deadline bool) (Outcome, Attempt) {
	switch {
	case deadline && d.deadlineCounts():
		return d.outcome(KindTimeout, false), Attempt{Kind: KindTimeout, Status: 504}
	case d.header || d.up.nginx.CancelIsOK:
		return OK, Attempt{}
	}
	return Abandoned, Attempt{}
}

// fail makes the request's error.
func (d *dispatch) fail(cause error) error {
	if errors.Is(cause, ErrNoLivePeers) {
		cause = nil // it is among the attempts
	}
	return &Error{Upstream: d.up.name, Attempts: append([]Attempt(nil), d.attempts...), Cause: cause}
}

// pick asks for a peer, and reports to the hooks how it was chosen.
func (d *dispatch) pick() error {
	u := d.up
	e := &u.explain
	wanted := e.wants(d.asked, u)
	if !wanted && !e.NoLivePeers && d.decisions == nil {
		return u.peers.Get(&d.req)
	}
	decision := &Decision{}
	err := u.peers.Explain(&d.req, decision)
	if d.decisions != nil {
		d.decisions(decision)
	}
	if wanted || e.NoLivePeers && err != nil {
		u.onDecision(decision)
	}
	return err
}
