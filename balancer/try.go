package balancer

import (
	"context"
	"errors"
	"time"

	"github.com/trunklb/trunk/peer"
)

// Try is one request of any protocol on its way through an upstream:
//
//	try := up.Start(ctx, balancer.Input{Key: "user-42"})
//	defer try.Close()
//	for try.Next() {
//		try.Done(send(try.Peer().Addr))
//	}
//	err := try.Err()
//
// It belongs to one goroutine at a time.
type Try struct {
	d   dispatch
	ctx context.Context
	// kind is the failure that the last attempt ended in; 0: none, and Next
	// may go on.
	kind Kind
	// ended says that no peer will be asked any more, ok that the last answered.
	ended, ok bool
	misused   bool // Done was called without a held peer
	cause     error
}

// Start begins a request. The method's variables are empty here: the key is that
// of in, or of WithInput. Nothing is held before Next.
func (u *Upstream) Start(ctx context.Context, in Input) *Try {
	t := &Try{ctx: ctx}
	in, with := in.ofContext(ctx)
	if err := t.d.begin(u, u.inputs.fill(in, nil), with); err != nil {
		t.end(err)
	}
	return t
}

// Next gets a peer for the next attempt. The first call always asks for one; a
// later one only after a failure that Retry lets pass on to another peer,
// while tries and time last. False: the loop is at its end, see Err. A peer that
// is still held, because Done was not called, is freed Abandoned before.
func (t *Try) Next() bool {
	if t.d.release() {
		t.kind = 0
	}
	switch {
	case t.ended:
		return false
	case t.ctx.Err() != nil:
		t.end(context.Cause(t.ctx))
		return false
	case t.d.asked && !t.more():
		t.end(nil)
		return false
	}
	if err := t.d.get(); err != nil {
		t.end(err)
		return false
	}
	return true
}

// more reports whether another peer may be asked, and takes the retry from the
// budget. A peer that was left without Done, or with ErrNextPeer, passes on whatever
// the kinds say.
func (t *Try) more() bool {
	kind := t.kind
	if kind == 0 {
		kind = ^Kind(0)
	}
	return t.d.may(kind) && t.d.up.budget.retry(t.d.up.clock())
}

func (t *Try) end(cause error) {
	t.ended, t.cause = true, cause
}

// Peer is a peer as a request got it. Its SID is what sticky finds it by again: remember it, and give it as Input.Hint.
type Peer = peer.Peer

// Peer returns the peer that is held; the zero Peer if none is.
func (t *Try) Peer() Peer {
	if !t.d.held {
		return Peer{}
	}
	p, _ := t.d.up.peers.Peer(&t.d.req)
	return p
}

// Done ends the attempt on the held peer, by what became of it:
//
//   - nil: the peer answered, and the loop ends.
//   - [ErrNextPeer], by errors.Is: another peer is wanted, and the peer is not blamed.
//   - [ErrAbandoned], by errors.Is: the caller gave up. Nothing is known about the peer,
//     which is freed Abandoned; a further Next asks another one.
//   - The context's own end: Abandoned, or OK after Header; a deadline that expires
//     after Retry.DeadlineCounts is the peer's timeout.
//   - Any other error: Failed, KindTimeout if it says so, else KindError.
//
// Without a held peer it does nothing, but that Err returns ErrNotHeld from then on.
func (t *Try) Done(err error) {
	if end, has := t.ctx.Deadline(); err != nil && has && !time.Now().Before(end) {
		<-t.ctx.Done() // a socket's timer may be a little earlier than the context's
	}
	switch {
	case !t.d.held:
		t.misused = true
	case err == nil:
		t.ok, t.kind = true, 0
		t.d.free(OK, &Attempt{Status: 200})
		t.end(nil)
	case errors.Is(err, ErrNextPeer):
		t.kind = 0
		t.d.free(Next, &Attempt{Err: err})
	case errors.Is(err, ErrAbandoned):
		t.kind = 0
		t.d.free(Abandoned, &Attempt{Err: err})
	case t.ctx.Err() != nil:
		outcome, a := t.d.callerGone(errors.Is(t.ctx.Err(), context.DeadlineExceeded))
		a.Err = err
		t.kind = a.Kind
		t.d.free(outcome, &a)
		t.end(nil)
	default:
		t.kind = failureKind(err)
		t.d.free(t.d.outcome(t.kind, false), &Attempt{Kind: t.kind, Status: statusOf(t.kind), Err: err})
	}
}

// Header reports that the held peer has answered: least_time averages the time,
// and a cancel of the caller is OK from now on. ErrNotHeld if none is held.
func (t *Try) Header() error {
	if !t.d.held {
		return ErrNotHeld
	}
	t.d.toHeader = t.d.up.clock() - t.d.since
	t.d.gotHeader()
	return nil
}

// Connected reports that the connection to the held peer is established. ErrNotHeld if
// none is held.
func (t *Try) Connected() error { return t.d.up.peers.Connected(&t.d.req) }

// FirstByte reports that the held peer has sent its first byte. ErrNotHeld if none
// is held.
func (t *Try) FirstByte() error { return t.d.up.peers.FirstByte(&t.d.req) }

// Attempts returns the attempts that have ended.
func (t *Try) Attempts() []Attempt { return append([]Attempt(nil), t.d.attempts...) }

// Err returns why there was no answer: an *Error with the attempts. nil if the
// last peer answered, or none was asked for yet. ErrNotHeld is its cause if Done was
// called without a held peer.
func (t *Try) Err() error {
	if t.misused {
		return t.d.fail(ErrNotHeld)
	}
	if t.ok || !t.ended && len(t.d.attempts) == 0 {
		return nil
	}
	return t.d.fail(t.cause)
}

// Close ends the request. A peer that is still held is freed Abandoned. It may be
// called more than once.
func (t *Try) Close() {
	t.d.release()
	if !t.ended {
		t.end(nil)
	}
}
