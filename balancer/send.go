package balancer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"
)

// ownTransport is a route over an http.Transport that dials the peer: the request
// need not be changed.
type ownTransport struct{ rt http.RoundTripper }

// send implements route.
func (o *ownTransport) send(x *exchange) (*http.Response, *reply, error) {
	if !x.wantsTrace() {
		resp, err := o.rt.RoundTrip(x.r)
		if err != nil {
			return nil, nil, err
		}
		x.end.see(resp)
		return resp, new(reply), nil
	}
	s := &sending{Context: x.r.Context(), trace: &x.trace}
	if x.up.nginx.StaleIsFailure && !isHTTPS(x.r) {
		s.Context, x.cancel = context.WithCancelCause(s.Context)
	}
	if httptrace.ContextClientTrace(s.Context) != nil {
		trace := x.trace // is changed by being put on top of the other
		s.Context, s.trace = httptrace.WithClientTrace(s.Context, &trace), nil
	}
	r := x.r.WithContext(s)
	if x.has {
		if err := x.out.dress(r, &s.body); err != nil {
			return nil, nil, err
		}
	}
	x.traced = true
	resp, err := o.rt.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	x.end.see(resp)
	return resp, &s.reply, nil
}

func (o *ownTransport) closeIdle() {
	if t, ok := o.rt.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// closeIdle does nothing: the connections are the base's.
func (*rewriter) closeIdle() {}

// wantsTrace reports whether the try must know of its connection: to tell whether
// anything was sent, and whether others fail by the same connection. A request
// without a body over plain HTTP/1 tells by its error.
func (x *exchange) wantsTrace() bool {
	return x.has || x.up.nginx.StaleIsFailure || x.end.h2.Load() || isHTTPS(x.r) ||
		x.up.retry.On&KindNonIdempotent != 0 && nonIdempotent(x.r.Method)
}

// see notes what the peer speaks.
func (e *endpoint) see(resp *http.Response) {
	if resp.ProtoMajor == 2 && !e.h2.Load() {
		e.h2.Store(true)
	}
}

// sending is what a traced try gives to the transport, whose goroutines may look
// at it after the try: it is not pooled. It is the try's context, with the trace
// in it, without another allocation.
type sending struct {
	context.Context
	trace *httptrace.ClientTrace // nil: it is in Context
	body  outBody
	reply reply
}

// Value implements context.Context.
func (s *sending) Value(key any) any {
	if s.trace != nil && key == traceKey {
		return s.trace
	}
	return s.Context.Value(key)
}

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

// rewriter is a route over a base that knows nothing of peers: it gets the peer's
// address in the URL.
type rewriter struct {
	base    http.RoundTripper
	addr    string
	timeout time.Duration // to the response header; 0: the base's own
}

// rewritten is a request for a rewriter. Not pooled: the base may keep it.
type rewritten struct {
	req   http.Request
	url   url.URL
	reply reply
}

type rewrittenBody struct {
	rewritten
	body outBody
}

// send implements route.
func (w *rewriter) send(x *exchange) (*http.Response, *reply, error) {
	var n *rewritten
	if x.has {
		b := new(rewrittenBody)
		n = &b.rewritten
		n.req = *x.r
		if err := x.out.dress(&n.req, &b.body); err != nil {
			return nil, nil, err
		}
	} else {
		n = new(rewritten)
		n.req = *x.r
	}
	n.url = *x.r.URL
	n.url.Host = w.addr
	r := &n.req
	r.URL = &n.url
	if r.Host == "" {
		r.Host = x.r.URL.Host
	}
	if w.timeout > 0 {
		return w.limited(x, r, &n.reply)
	}
	resp, err := w.roundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	return resp, &n.reply, nil
}

// roundTrip asks the base, which is somebody's own: what it returns is checked.
func (w *rewriter) roundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.base.RoundTrip(r)
	if err == nil && resp == nil {
		return nil, errNothing
	}
	return resp, err
}

var errNothing = errors.New("trunk: the base transport has returned neither an answer nor an error")

// limited is send with a limit for the time to the response header.
func (w *rewriter) limited(x *exchange, r *http.Request, b *reply) (*http.Response, *reply, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	x.cancel = cancel
	timer := time.AfterFunc(w.timeout, func() { cancel(errTryTimeout) })
	resp, err := w.roundTrip(r.WithContext(ctx))
	switch {
	case !timer.Stop() && context.Cause(ctx) == errTryTimeout:
		if err == nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, nil, errTryTimeout
	case err != nil:
		return nil, nil, err
	}
	return resp, b, nil
}

// errTryTimeout is the expiry of Retry.ReadTimeout over a base of another's.
var errTryTimeout error = tryTimeout{}

type tryTimeout struct{}

func (tryTimeout) Error() string { return "trunk: timeout awaiting the response header" }
func (tryTimeout) Timeout() bool { return true }
