package balancer

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// ownTransport is a route over an http.Transport that dials the peer: the request
// is the caller's but for its context and body.
type ownTransport struct {
	rt      *http.Transport
	connect time.Duration // Retry.ConnectTimeout or its default
	h2c     bool          // it speaks HTTP/2 over http
}

// send implements route.
func (o *ownTransport) send(x *exchange) (*http.Response, *reply, error) {
	s, err := newSending(x)
	if err != nil {
		return nil, nil, err
	}
	s.own, s.h2c = true, o.h2c
	s.wait(connecting, o.connect)
	resp, err := o.rt.RoundTrip(&s.req)
	if err != nil {
		return nil, nil, err
	}
	s.answered()
	x.end.see(resp)
	return resp, &s.reply, nil
}

func (o *ownTransport) closeIdle() { o.rt.CloseIdleConnections() }

// see notes what the peer speaks.
func (e *endpoint) see(resp *http.Response) {
	if resp.ProtoMajor == 2 && !e.h2.Load() {
		e.h2.Store(true)
	}
}

// rewriter is a route over a base that knows nothing of peers: it gets the peer's
// address in the URL.
type rewriter struct {
	base    http.RoundTripper
	addr    string
	timeout time.Duration // to the response header; 0: the base's own
}

// send implements route.
func (w *rewriter) send(x *exchange) (*http.Response, *reply, error) {
	s, err := newSending(x)
	if err != nil {
		return nil, nil, err
	}
	s.url = *x.r.URL
	s.url.Host = w.addr
	r := &s.req
	r.URL = &s.url
	if r.Host == "" {
		r.Host = x.r.URL.Host
	}
	resp, err := w.limited(s, r)
	switch {
	case s.traced():
		x.t.traces.Store(true)
	case err == nil:
		x.t.traceless.Store(true)
	}
	if err != nil {
		return nil, nil, err
	}
	s.answered()
	x.end.see(resp)
	return resp, &s.reply, nil
}

// closeIdle does nothing: the connections are the base's.
func (*rewriter) closeIdle() {}

// limited asks the base, with a limit for the time to the response header.
func (w *rewriter) limited(s *sending, r *http.Request) (*http.Response, error) {
	if w.timeout <= 0 {
		return w.roundTrip(r)
	}
	timer := time.AfterFunc(w.timeout, func() { s.cancel(errTryTimeout) })
	resp, err := w.roundTrip(r)
	if !timer.Stop() && context.Cause(s.Context) == errTryTimeout {
		if err == nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, errTryTimeout
	}
	return resp, err
}

// roundTrip asks the base, which is the user's: what it returns is checked.
func (w *rewriter) roundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.base.RoundTrip(r)
	if err == nil && resp == nil {
		return nil, errNothing
	}
	return resp, err
}

var errNothing = errors.New("trunk: the base transport has returned neither an answer nor an error")
