package balancer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// sending is one try as it was given to a transport: the request's context with a trace
// in it, the request, and how far it has come. The transport's goroutines may look at
// it after the try, so it is not pooled.
type sending struct {
	context.Context
	cancel context.CancelCauseFunc
	trace  httptrace.ClientTrace
	inside bool // the trace is in Context, over one of the caller's
	h2c    bool // the transport speaks HTTP/2 over http
	own    bool // the transport is one of trunk's own

	req   http.Request
	url   url.URL
	body  outBody
	reply reply

	mu sync.Mutex
	progress
	phase phase
	due   time.Time
	timer *time.Timer
	ended bool // nothing that comes later matters
}

// progress is how far a try has come, as its connections and the transport's trace have
// shown it. docs/parity.md, section 8, has the table that is decided by it.
type progress struct {
	asked   int   // how often the transport wanted a connection
	dials   bool  // a connection was dialled for it
	dialled *conn // the last one; nil: it has not come about
	got     bool  // it has got one
	conn    *conn // which; nil: it is not one of trunk's
	tls     bool  // it is encrypted
	h2      bool  // it speaks HTTP/2
	reused  bool  // it was used before
	alone   bool  // no other try was on it
	writes  int64 // conn.writes when it was got
	taken   int64 // conn.taken likewise

	headers   bool  // the request's header was written
	writeErr  error // the transport began to write the request, and has met this
	firstByte bool  // of the answer
	repeats   bool  // the transport was about to send the request again
	waited    bool  // the connection or stream broke off while the body waited for the caller
}

// phase is what a try is waiting for that trunk itself limits.
type phase uint8

const (
	unlimited phase = iota
	connecting
	writing
)

// Causes of the end of a try's context.
var (
	// errRepeat: the transport was about to send the request again.
	errRepeat = errors.New("trunk: the request is not sent again unseen")
	// errLost: a connection that was used before is closed, and has brought no answer.
	errLost = errors.New("trunk: the kept-alive connection was closed")
	// errConnectTimeout and errSendTimeout: Retry.ConnectTimeout and SendTimeout.
	errConnectTimeout error = tryTimeout("trunk: timeout connecting to the peer")
	errSendTimeout    error = tryTimeout("trunk: timeout sending the request")
	// errTryTimeout: Retry.ReadTimeout over a base of another's.
	errTryTimeout error = tryTimeout("trunk: timeout awaiting the response header")
)

type tryTimeout string

func (e tryTimeout) Error() string { return string(e) }
func (tryTimeout) Timeout() bool   { return true }

// maxAsked is how often a transport may want a connection for one try before anything
// was written: racing dials make it two or three, a peer that ends each connection at
// once any number.
const maxAsked = 16

// newSending makes the next try of x's request, a copy of the caller's.
func newSending(x *exchange) (*sending, error) {
	s := &sending{}
	s.Context, s.cancel = context.WithCancelCause(x.r.Context())
	s.trace = httptrace.ClientTrace{GetConn: s.getConn, GotConn: s.gotConn, WroteHeaders: s.wroteHeaders, WroteRequest: s.wroteRequest, GotFirstResponseByte: s.gotFirstByte}
	if httptrace.ContextClientTrace(s.Context) != nil {
		s.Context, s.inside = httptrace.WithClientTrace(s.Context, &s.trace), true
	}
	s.req = *x.r.WithContext(s)
	if x.has {
		if err := x.out.dress(&s.req, &s.body); err != nil {
			s.cancel(nil)
			return nil, err
		}
		if s.req.Body != http.NoBody {
			s.body.watch = s.bodyRead
			s.req.GetBody = s.getBody
		}
	}
	x.now = s
	return s, nil
}

// Value implements context.Context.
func (s *sending) Value(key any) any {
	switch {
	case key == traceKey && !s.inside:
		return &s.trace
	case key == sendingKey{}:
		return s
	}
	return s.Context.Value(key)
}

// sendingKey is the context's key of the try.
type sendingKey struct{}

// traceKey is httptrace's key, which it does not export: a context that is asked
// for its trace sees it.
var traceKey = func() any {
	var s keySpy
	httptrace.ContextClientTrace(&s)
	return s.key
}()

type keySpy struct {
	context.Context
	key any
}

func (s *keySpy) Value(key any) any {
	s.key = key
	return nil
}

// getConn is the trace's hook: the transport wants a connection. If the request was
// written before, it is about to be sent again, which trunk alone decides.
func (s *sending) getConn(string) {
	s.mu.Lock()
	s.asked++
	ends := s.written() || s.asked > maxAsked
	if ends {
		s.repeats = true
	}
	s.mu.Unlock()
	if ends {
		s.cancel(errRepeat)
	}
}

// dialling is called by the dialler of a connection for the try, when it begins and when c
// has come about.
func (s *sending) dialling(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials, s.dialled = true, c
}

// getBody is the request's GetBody. net/http asks for it when it is about to send the
// request again.
func (s *sending) getBody() (io.ReadCloser, error) {
	s.mu.Lock()
	s.repeats = true
	s.mu.Unlock()
	return nil, errRepeat
}

// gotConn is the trace's hook.
func (s *sending) gotConn(info httptrace.GotConnInfo) {
	c := connOf(info.Conn)
	secure, isTLS := info.Conn.(*tls.Conn)
	s.mu.Lock()
	if s.repeats {
		stray := !s.h2
		s.mu.Unlock()
		if stray { // it has come together with the end of the try, and would carry the request
			info.Conn.Close()
		}
		return
	}
	defer s.mu.Unlock()
	s.leaveConn()
	s.got, s.conn, s.reused = true, c, info.Reused
	s.tls = isTLS
	s.h2 = isTLS && secure.ConnectionState().NegotiatedProtocol == "h2" || !isTLS && s.h2c
	if c != nil {
		s.writes = c.writes.Load()
		s.taken, s.alone = c.taken.Add(1), c.streams.Add(1) == 1
		if !s.h2 {
			c.rider.Store(s)
		}
	}
}

// leaveConn lets go of the connection. Under the lock.
func (s *sending) leaveConn() {
	if c := s.conn; c != nil {
		c.rider.CompareAndSwap(s, nil)
		c.streams.Add(-1)
		s.conn = nil
	}
}

// wroteHeaders is the trace's hook.
func (s *sending) wroteHeaders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = true
	s.wait(unlimited, 0)
}

// wroteRequest is the trace's hook.
func (s *sending) wroteRequest(info httptrace.WroteRequestInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeErr = info.Err
	s.wait(unlimited, 0)
}

// gotFirstByte is the trace's hook.
func (s *sending) gotFirstByte() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firstByte = true
}

// written reports whether a part of the request may have reached the peer. Over
// HTTP/1 the connection knows; over HTTP/2, which it shares, the trace. TLS writes when it is
// closed, too: there the connection's error counts that the writing has met. Under the lock.
func (p *progress) written() bool {
	switch {
	case p.unwritable():
		return false
	case p.headers:
		return true
	case !p.got || p.h2 || p.conn == nil:
		return false
	case p.tls:
		return p.writeErr != nil && isNetwork(p.writeErr)
	}
	return p.conn.writes.Load() != p.writes
}

// unwritable reports whether the first write of the request failed with nothing written: the
// trace has it as written all the same. Over HTTP/2 a write may be another request's.
// Under the lock.
func (p *progress) unwritable() bool {
	return p.conn != nil && !p.h2 && p.conn.unwritten.Load() == p.writes+1
}

// refused reports whether the transport would not write the request to a connection of
// HTTP/1. Under the lock.
func (p *progress) refused() bool {
	return !p.written() && !p.unwritable() && p.writeErr != nil && !isNetwork(p.writeErr)
}

// sofar returns how far the try has come.
func (s *sending) sofar() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

// traced reports whether the transport has called a hook.
func (s *sending) traced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked > 0 || s.got
}

// lost notes that c, which s has to itself, is being closed. net/http would take another
// connection for the request: the try ends here instead.
func (s *sending) lost(c *conn) {
	s.mu.Lock()
	if s.ended || s.conn != c {
		s.mu.Unlock()
		return
	}
	s.waited = s.waited || s.body.isReading()
	ends := s.reused && !s.firstByte && !s.refused() && (c.cut.Load() || s.written())
	s.mu.Unlock()
	if ends {
		s.cancel(errLost)
	}
}

// bodyRead notes that the transport reads the request's body, and that it has read a
// part of it, which it is going to send.
func (s *sending) bodyRead(begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case begins:
		s.wait(unlimited, 0)
	case s.timer != nil:
		s.wait(writing, s.sendTimeout())
	}
}

func (s *sending) sendTimeout() time.Duration {
	if s.conn != nil {
		return s.conn.send
	}
	return defaultTimeout
}

// wait limits what comes next. Under the lock, but for the first time.
func (s *sending) wait(for_ phase, limit time.Duration) {
	if s.timer == nil && for_ == unlimited {
		return
	}
	if s.ended {
		for_ = unlimited
	}
	s.phase = for_
	if for_ == unlimited {
		s.timer.Stop()
		return
	}
	s.due = time.Now().Add(limit)
	if s.timer == nil {
		s.timer = time.AfterFunc(limit, s.expire)
	} else {
		s.timer.Reset(limit)
	}
}

// expire is the timer's.
func (s *sending) expire() {
	s.mu.Lock()
	cause := errConnectTimeout
	if s.phase == writing {
		cause = errSendTimeout
	}
	early := s.phase == unlimited || time.Now().Before(s.due)
	s.mu.Unlock()
	if !early {
		s.cancel(cause)
	}
}

// reason returns why the try has failed, where err is only what trunk has made of it.
func (s *sending) reason(err error) error {
	cause := context.Cause(s.Context)
	switch cause {
	case errConnectTimeout, errSendTimeout, errTryTimeout:
		return cause
	case errRepeat, errLost:
	default:
		if err != errRepeat {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		if broken := s.conn.broken.Load(); broken != nil {
			return *broken
		}
	}
	if s.h2 {
		return errUnprocessed
	}
	return errLost
}

// errUnprocessed: an HTTP/2 peer has refused the stream, or is shutting down.
var errUnprocessed = errors.New("trunk: the peer did not process the request (HTTP/2 GOAWAY or REFUSED_STREAM)")

// answered notes that the answer's header has come.
func (s *sending) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait(unlimited, 0)
	s.ended = true
}

// end ends the try, with the body of its answer, if any.
func (s *sending) end() {
	s.mu.Lock()
	s.wait(unlimited, 0)
	s.ended = true
	s.leaveConn()
	s.mu.Unlock()
	s.cancel(nil)
}
