package balancer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/trunklb/trunk/internal/glue"
)

// exchange is one HTTP request on its way through an upstream, until its answer's
// body is done. It is pooled: whoever holds one after that holds a reply or an
// outBody, which are not.
type exchange struct {
	dispatch
	t   *transport
	r   *http.Request // the caller's
	out outgoing      // its body, if it has one
	has bool          // it has one
	// resp is the answer that the caller gets, for sticky.
	resp *http.Response
	// end is how its body's end counts.
	outcome Outcome
	last    Attempt // the attempt whose body is being read
	// kept is the last answer that was not delivered, for Retry.LastAnswer.
	kept *http.Response

	// now is the present try; nil: there is none.
	now *sending
	// verdict is what the last try proves; zero for one that was answered.
	verdict ruling
	// second: the held peer has got a second try for one.
	second bool
	// sent counts the tries of which the peer may have processed the request.
	sent int
}

func newExchange(up *Upstream) *exchange {
	x := &exchange{}
	x.up = up
	return x
}

// run is RoundTrip for a request of the upstream.
func (x *exchange) run(t *transport, r *http.Request) (*http.Response, error) {
	x.t, x.r, x.sent = t, r, 0
	x.has = r.Body != nil && r.Body != http.NoBody
	if x.has {
		x.out.reset(r, x.up.retry.BufferBody)
	}
	given := false
	// Of the user's code, Config.Input, variables, GetBody, trace hooks and the
	// base run in here. A panic of theirs keeps no peer.
	defer func() {
		if !given {
			x.abandon()
		}
	}()
	resp, err := x.loop()
	given = true
	if err != nil {
		x.forget()
		if x.has {
			x.out.close()
		}
		x.recycle()
	}
	return resp, err
}

// loop asks peers until one answers or no other may be asked.
func (x *exchange) loop() (*http.Response, error) {
	ctx := x.r.Context()
	in, with := Input{}.ofContext(ctx)
	if x.up.inputs.wanted {
		in = x.up.inputs.fill(in, x.r)
	}
	if err := x.begin(x.up, in, with); err != nil {
		return nil, x.fail(err)
	}
	if x.has && x.up.retry.BufferFirst && x.out.tape != nil {
		if err := x.out.readFirst(ctx); err != nil {
			return nil, x.fail(err)
		}
	}
	// A hint that came with the request goes before the one that sticky would
	// find, as all Input does.
	binds := x.up.sticky != nil && x.req.Hint == ""
	for {
		if binds {
			x.req.Hint = x.up.sticky.hint(x.r)
			binds = x.up.sticky.binding.Learns() // else it stays what it is
		}
		if err := x.get(); err != nil {
			return x.giveUp(err)
		}
		resp, reply, err := x.ask(ctx)
		if err != nil {
			kind, final := x.failed(ctx, err)
			if final != nil {
				return nil, final
			}
			if !x.passOn(kind) {
				return x.giveUp(nil)
			}
			continue
		}
		if x.log != nil || x.up.retry.On&statusKinds != 0 {
			x.toHeader = x.up.clock() - x.since
		}
		x.verdict = ruling{}
		if kind := statusKind(resp.StatusCode); kind != 0 && x.mayPass(kind) && x.up.budget.retry(x.up.clock()) {
			x.passOver(kind, resp)
			continue
		}
		return x.deliver(resp, reply), nil
	}
}

// maxAgain is how often a request is sent to the held peer once more. More than once is it
// only after kept-alive connections that were closed before it could be written.
const maxAgain = 8

// ask sends the request to the held peer. If it fails there by the connection alone, and
// not by the peer, it is sent there once more.
func (x *exchange) ask(ctx context.Context) (*http.Response, *reply, error) {
	x.second = false
	for again := 0; ; again++ {
		x.now = nil
		resp, reply, err := x.end.way(x.t.index).(route).send(x)
		if err == nil {
			x.sent++
			return resp, reply, nil
		}
		if x.fault(ctx, err) != nil {
			return nil, nil, err
		}
		if x.verdict = x.judge(err, x.second); !x.verdict.unsent {
			x.sent++
		}
		if x.now != nil {
			err = x.now.reason(err)
		}
		if again == maxAgain || !x.verdict.again || !x.mayAgain() {
			return nil, nil, err
		}
		x.second = true
		if x.now != nil && !x.now.sofar().h2 {
			x.end.closeIdle() // what was kept alive beside a connection that has died may be dead too
		}
		x.endTry()
	}
}

// fault returns what ended a try other than the transport or the peer: the request's own body,
// or the caller. nil: nothing did.
func (x *exchange) fault(ctx context.Context, err error) error {
	if x.has && x.out.now != nil {
		if fault := x.out.now.fault(); fault != nil {
			return withEnd(ctx, fault)
		}
	}
	if wrong := (*BodyError)(nil); errors.As(err, &wrong) {
		return withEnd(ctx, err) // there is no body to send
	}
	if ctx.Err() != nil || canceled(x.r) {
		return errGone
	}
	return nil
}

// errGone: the caller has gone.
var errGone = errors.New("trunk: the caller has gone")

// failed frees a peer that did not answer. final is set where no other peer can be
// asked, because the reason is not the peer.
func (x *exchange) failed(ctx context.Context, err error) (kind Kind, final error) {
	switch fault := x.fault(ctx, err); {
	case fault == errGone:
		outcome, a := x.callerGone(errors.Is(ctx.Err(), context.DeadlineExceeded))
		// What the transport says then may be what the end looks like from there.
		a.Err = err
		if end := ctx.Err(); end != nil && !errors.Is(err, end) && !errors.Is(err, context.Cause(ctx)) {
			a.Err = context.Cause(ctx)
		}
		x.freed(outcome, &a, nil)
		return 0, x.fail(nil)
	case fault != nil:
		return 0, x.refuse(x.fail(fault))
	case x.verdict.own:
		return 0, x.refuse(err)
	}
	kind = x.verdict.kind
	outcome := x.dispatch.outcome(kind, false)
	if !x.verdict.blame && outcome == Failed {
		outcome = Abandoned
	}
	x.freed(outcome, &Attempt{Kind: kind, Status: statusOf(kind), Err: err}, nil)
	if x.verdict.giveBack {
		x.up.peers.Internal(glue.Key{}).GiveBackTry(&x.req)
		x.gets--
	}
	return kind, nil
}

// withEnd says with an error of the request's body that the caller has gone, if it
// has: that may be why.
func withEnd(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &BodyError{fmt.Errorf("%w (%w)", err, context.Cause(ctx))}
}

// refuse ends a request that is wrong in itself.
func (x *exchange) refuse(err error) error {
	outcome := Abandoned
	if x.up.nginx.CancelIsOK {
		outcome = OK
	}
	x.freed(outcome, &Attempt{Err: err}, nil)
	return err
}

// passOn reports whether a request that failed by kind may go to another peer, the
// last one having been freed, and takes the retry from the budget.
func (x *exchange) passOn(kind Kind) bool {
	return x.mayPass(kind) && x.up.budget.retry(x.up.clock())
}

// mayPass is passOn but for the budget.
func (x *exchange) mayPass(kind Kind) bool {
	return x.may(kind) && x.resendable()
}

// mayAgain reports whether a request may be sent to the held peer once more, and takes
// that from the budget.
func (x *exchange) mayAgain() bool {
	return !x.up.retry.Off && x.inTime() && x.resendable() && x.up.budget.retry(x.up.clock())
}

// resendable reports whether the request may be sent once more: as far as its method, its
// body and Retry.Executions go.
func (x *exchange) resendable() bool {
	r := &x.up.retry
	switch {
	case !x.verdict.unsent && nonIdempotent(x.r.Method) && !r.NonIdempotent:
		return false
	case r.Executions > 0 && x.sent >= r.Executions:
		return false
	}
	return !x.has || x.out.again()
}

// passOver frees a peer whose answer is not delivered.
func (x *exchange) passOver(kind Kind, resp *http.Response) {
	outcome := x.dispatch.outcome(kind, true)
	x.forget()
	if x.up.retry.LastAnswer {
		x.keep(resp)
	} else {
		x.discard(resp.Body)
	}
	x.freed(outcome, &Attempt{Kind: kind, Status: resp.StatusCode}, resp)
}

// keep keeps an answer that is not delivered, for giveUp. Its peer is held no longer, but
// used until its body is closed.
func (x *exchange) keep(resp *http.Response) {
	x.kept = resp
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	x.end.enter()
	resp.Body = &keptBody{ReadCloser: resp.Body, end: x.end, try: x.now}
	x.now = nil
}

// keptBody is the body of an answer that is kept, with its peer and its try's context.
type keptBody struct {
	io.ReadCloser
	end  *endpoint
	try  *sending
	once sync.Once
}

// Close implements io.Closer.
func (b *keptBody) Close() error {
	defer b.once.Do(func() {
		b.try.end()
		b.end.leave()
	})
	return b.ReadCloser.Close()
}

// forget lets go of the answer that was kept.
func (x *exchange) forget() {
	if x.kept != nil {
		x.discard(x.kept.Body)
		x.kept = nil
	}
}

// giveUp ends a request that no peer has answered, or, with Retry.LastAnswer, that
// was last answered by one whose answer was not delivered.
func (x *exchange) giveUp(cause error) (*http.Response, error) {
	if resp := x.kept; resp != nil {
		x.kept = nil
		resp.Request = x.r
		if resp.Body == nil {
			resp.Body = http.NoBody
		}
		if x.has {
			x.out.close()
		}
		x.recycle()
		return resp, nil
	}
	return nil, x.fail(cause)
}

// deliver gives the answer to the caller. The peer is held until its body is done.
func (x *exchange) deliver(resp *http.Response, b *reply) *http.Response {
	x.resp = resp // before hooks run, which may panic
	x.forget()
	x.gotHeader()
	if x.has {
		x.out.answered()
	}
	resp.Request = x.r
	if !x.up.keepRedirects {
		x.turnBack(resp)
	}
	if x.up.sticky != nil {
		p, _ := x.up.peers.Peer(&x.req)
		x.up.sticky.answered(x.r, resp, &p)
	}
	x.outcome = OK
	if kind := statusKind(resp.StatusCode); kind != 0 {
		x.outcome = x.dispatch.outcome(kind, false)
	}
	if x.log != nil {
		x.last = Attempt{Status: resp.StatusCode, Outcome: x.outcome}
		x.fill(&x.last)
		x.logged = x.log.len()
		x.log.add(x.last)
	}
	if !b.wrap(x, x.r, resp) {
		x.finish(nil)
	}
	return resp
}

// finish lets the peer go when the answer's body is done. err is why it broke off.
func (x *exchange) finish(err error) {
	o := x.outcome
	if err != nil && x.up.retry.Counts&KindBody != 0 && x.r.Context().Err() == nil {
		o = Failed
		if x.log != nil {
			x.last.Kind, x.last.Err = KindBody, err
		}
	}
	x.freed(o, nil, x.resp)
	if x.log != nil {
		x.last.Outcome = o
		x.fill(&x.last)
		x.log.settle(x.logged, x.last)
	}
	x.recycle()
}

// freed frees the held peer, and informs sticky.
func (x *exchange) freed(o Outcome, a *Attempt, resp *http.Response) {
	x.endTry()
	if x.up.sticky == nil {
		x.free(o, a)
		return
	}
	p, _ := x.up.peers.Peer(&x.req)
	x.free(o, a)
	x.up.sticky.freed(x.r, resp, &p, o)
}

// endTry ends the present try, if there is one.
func (x *exchange) endTry() {
	if x.now != nil {
		x.now.end()
		x.now = nil
	}
}

// abandon cleans up after a panic. Nothing of x is used again.
func (x *exchange) abandon() {
	if x.has {
		x.out.close()
	}
	if x.resp != nil && x.resp.Body != nil {
		x.resp.Body.Close() // it has come, but will not be delivered
	}
	x.endTry()
	x.release()
	x.forget()
}

// recycle gives the exchange back. It must hold nothing, and is not to be touched
// after that.
func (x *exchange) recycle() {
	x.t, x.r, x.resp, x.end, x.verdict = nil, nil, nil, nil, ruling{}
	// Only what was used is cleared, for the collector's sake.
	if x.has {
		x.out = outgoing{}
	}
	if x.log != nil {
		x.last, x.log = Attempt{}, nil
	}
	if len(x.attempts) > 0 {
		clear(x.inline[:])
	}
	x.attempts = nil
	x.req.Key, x.req.Hint = "", ""
	x.up.pool.Put(x)
}

const (
	drainBytes = 4 << 10
	drainTime  = 50 * time.Millisecond
)

// discard reads a little of an undelivered answer's body, so that its
// connection can be used again, and closes it.
func (x *exchange) discard(body io.ReadCloser) {
	if body == nil || body == http.NoBody {
		return
	}
	if x.up.nginx.CloseUnread {
		body.Close()
		return
	}
	b := &reply{ReadCloser: body}
	timer := time.AfterFunc(drainTime, func() { b.Close() })
	io.CopyN(io.Discard, body, drainBytes)
	timer.Stop()
	b.Close()
}

// canceled reports whether the deprecated Request.Cancel was closed.
func canceled(r *http.Request) bool {
	if r.Cancel == nil {
		return false
	}
	select {
	case <-r.Cancel:
		return true
	default:
		return false
	}
}
