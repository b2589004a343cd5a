package balancer

import (
	"errors"
	"net/http"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/internal/ascii"
)

// RoundTripper returns a transport that sends requests whose URL names the
// upstream to its peers, and passes others to base (see Config.OnlyUpstream).
// It owns the connections. Goroutines may share it. For the same base it returns the same
// transport, unless base is of a type that == cannot compare: then keep what it returned.
//
// base nil, or an *http.Transport: each peer has an http.Transport of its own, a
// clone of base that dials the peer, a TCP or unix address, whatever the URL
// says. URL and Host stay the logical ones, so that TLS asks for and verifies the
// logical name, and cookies and redirects see nothing else. The clone has no
// Proxy, Dial or DialTLS; a DialContext (or Dial) of base is used to dial, whose
// panic is an error like any other. It speaks HTTP/2 where base would have. Its
// connect, TLS and header timeouts are those of Config.Retry, its idle one is
// Config.KeepaliveTimeout, else base's own, else 60 s. A base with DialTLSContext
// is refused, for it would pass the peer by: requests fail with a *BaseError.
//
// Any other base is wrapped: it gets a copy of the request with the peer's
// address as the host of the URL. So it cannot reach peers on unix sockets, nor
// any peer by https, whose certificate would have to be the address's own:
// such requests are refused with a *BaseError. Its timeouts are its own; one for
// the response header is added if Retry.ReadTimeout is set. Whether it has
// connected is known only by an error of type *net.OpError whose Op is "dial".
//
// The context's deadline and cancel are the caller's and hold for all tries
// together. Errors are of type *Error, except where the request itself is
// wrong: that is the error of base, and no peer is blamed; or a *MethodError for
// least_time connect and first_byte, which HTTP does not have.
func (u *Upstream) RoundTripper(base http.RoundTripper) http.RoundTripper {
	own, isOwn := base.(*http.Transport)
	if isOwn && own == nil {
		base = nil
	}
	t := &transport{up: u, base: base, other: base, err: u.checkHTTP(), name: checkHost(u.name)}
	switch {
	case base == nil:
		t.other, t.tmpl = http.DefaultTransport, &http.Transport{ExpectContinueTimeout: time.Second}
	case t.err != nil:
		return t
	case isOwn && own.DialTLSContext != nil:
		t.err = &BaseError{"its DialTLSContext would dial the logical name, not the peer"}
		return t
	default:
		t.tmpl = own
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if base == nil || reflect.ValueOf(base).Comparable() { // == of functions would panic
		for _, old := range u.bases {
			if old, is := old.(*transport); is && old.base == base {
				return old
			}
		}
	}
	t.index = len(u.bases)
	u.bases = append(u.bases, t)
	for e := range u.ends.all() {
		r := t.newRoute(e)
		if no, ok := r.(unreachable); ok {
			t.err = no.err
		}
		e.addRoute(r)
	}
	return t
}

// transport is an Upstream over one base.
type transport struct {
	up    *Upstream
	index int               // in up.bases
	base  http.RoundTripper // as it was given
	other http.RoundTripper // for other hosts: the base
	tmpl  *http.Transport   // of the peers' transports; nil: base is wrapped
	err   error             // why base was refused
	name  error             // why no URL can name the upstream
	// traces says that base, where it is wrapped, calls the hooks of a httptrace, and
	// traceless that it answers without.
	traces, traceless atomic.Bool
}

// route is the way to one peer.
type route interface {
	// send sends x's request to the peer, once. The reply is for the answer's body.
	send(x *exchange) (*http.Response, *reply, error)
	way
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.name != nil {
		closeBody(r)
		return nil, t.name
	}
	if r.URL == nil || !t.up.named(r.URL) {
		if t.up.onlyUpstream && r.URL != nil {
			closeBody(r)
			return nil, ErrOtherHost
		}
		return t.other.RoundTrip(r)
	}
	if t.err != nil {
		closeBody(r)
		return nil, t.err
	}
	if t.tmpl == nil && isHTTPS(r) {
		closeBody(r)
		return nil, &BaseError{"it is no *http.Transport, and https to a peer would verify the peer's address"}
	}
	if err := checkRequest(r); err != nil {
		closeBody(r)
		return nil, err
	}
	if t.up.closed.Load() {
		closeBody(r)
		return nil, &Error{Upstream: t.up.name, Cause: ErrClosed}
	}
	x, _ := t.up.pool.Get().(*exchange)
	if x == nil {
		x = newExchange(t.up)
	}
	return x.run(t, r)
}

// checkRequest refuses what net/http would send over HTTP/2 although no peer can take it.
func checkRequest(r *http.Request) error {
	isControl := func(c rune) bool { return c < ' ' || c == 0x7f }
	switch {
	case strings.IndexFunc(r.URL.RawQuery, isControl) >= 0:
		return &RequestError{Field: "URL.RawQuery", Value: r.URL.RawQuery, Reason: "holds a control character"}
	case strings.IndexFunc(r.URL.Opaque, isControl) >= 0:
		return &RequestError{Field: "URL.Opaque", Value: r.URL.Opaque, Reason: "holds a control character"}
	}
	return nil
}

// CloseIdleConnections closes the connections that no request uses, base's too.
// http.Client.CloseIdleConnections calls it.
func (t *transport) CloseIdleConnections() {
	t.up.CloseIdleConnections()
	if c, ok := t.other.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// checkHost refuses a name that is the host of no URL: nothing would ever be balanced. An
// upstream for Start needs no name.
func checkHost(name string) error {
	if _, err := netip.ParseAddr(name); err != nil && (name == "" || strings.ContainsAny(name, ":/@?#[] ")) {
		return &ConfigError{Server: -1, Field: "Name", Value: strconv.Quote(name),
			Reason: "must be the host of the URLs that are balanced, without scheme, port and path"}
	}
	return nil
}

func isHTTPS(r *http.Request) bool {
	return r.URL.Scheme != "http" && ascii.EqualFold(r.URL.Scheme, "https")
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// newRoute makes the way to a peer.
func (t *transport) newRoute(e *endpoint) way {
	if t.tmpl == nil {
		network, addr := network(e.server().Addr)
		if network == "unix" {
			return unreachable{&BaseError{"it is no *http.Transport, and cannot reach " + e.server().Addr}}
		}
		return &rewriter{base: t.other, addr: addr, timeout: t.up.retry.ReadTimeout}
	}
	return &ownTransport{
		rt:      t.up.cloneFor(e, t.tmpl),
		connect: cmpDuration(t.up.retry.ConnectTimeout, defaultTimeout),
		h2c:     speaksH2C(t.tmpl),
	}
}

// speaksH2C reports whether a transport speaks HTTP/2 over http.
func speaksH2C(t *http.Transport) bool {
	return t.Protocols != nil && t.Protocols.UnencryptedHTTP2() && !t.Protocols.HTTP1()
}

// unreachable is the way to a peer that the base cannot reach.
type unreachable struct{ err error }

func (u unreachable) send(*exchange) (*http.Response, *reply, error) {
	return nil, nil, &dialError{u.err}
}

func (unreachable) closeIdle() {}

// cloneFor makes the http.Transport of one peer after the user's.
func (u *Upstream) cloneFor(end *endpoint, tmpl *http.Transport) *http.Transport {
	t := tmpl.Clone()
	// Clone has decided whether the original speaks HTTP/2, by registering it
	// there; a clone that has a DialContext would decide otherwise.
	h2 := tmpl.TLSNextProto["h2"] != nil
	t.ForceAttemptHTTP2 = t.ForceAttemptHTTP2 || h2
	if t.TLSNextProto["h2"] != nil {
		// An HTTP/2 of the user's own brings a pool of connections by logical
		// name along, in which those of all peers would mix.
		t.TLSNextProto = nil
	}
	dial := tmpl.DialContext
	if dial == nil {
		dial = plainDial(tmpl.Dial)
	}
	t.Proxy, t.Dial, t.DialTLS = nil, nil, nil

	connect := cmpDuration(u.retry.ConnectTimeout, defaultTimeout)
	t.DialContext = (&dialer{end: end, dial: dial, connect: connect, send: cmpDuration(u.retry.SendTimeout, defaultTimeout)}).DialContext
	t.TLSHandshakeTimeout = cmpDuration(u.retry.ConnectTimeout, t.TLSHandshakeTimeout, defaultTimeout)
	t.ResponseHeaderTimeout = cmpDuration(u.retry.ReadTimeout, t.ResponseHeaderTimeout, defaultTimeout)
	u.keepalive.set(t)
	return t
}

// cmpDuration returns the first that is set.
func cmpDuration(ds ...time.Duration) time.Duration {
	for _, d := range ds {
		if d != 0 {
			return d
		}
	}
	return 0
}

// Join returns one transport for several upstreams: a request goes to the one
// that its URL names, or to base. No two may have the same name, and base must
// be one that RoundTripper takes; else the error is a *ConfigError or a *BaseError.
func Join(base http.RoundTripper, ups ...*Upstream) (http.RoundTripper, error) {
	j := &joined{}
	for i, u := range ups {
		for _, t := range j.transports {
			if ascii.EqualFold(t.up.name, u.name) {
				return nil, &ConfigError{Server: -1, Field: "Name", Value: u.name, Reason: "is the name of another upstream"}
			}
		}
		t := u.RoundTripper(base).(*transport)
		if t.err != nil {
			return nil, t.err
		}
		j.transports = append(j.transports, t)
		if i == 0 {
			j.other = t.other
		}
	}
	if len(ups) == 0 {
		return nil, errors.New("trunk: Join needs an upstream")
	}
	return j, nil
}

// joined are several upstreams over one base.
type joined struct {
	transports []*transport
	other      http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (j *joined) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL != nil {
		for _, t := range j.transports {
			if t.up.named(r.URL) {
				return t.RoundTrip(r)
			}
		}
		if j.transports[0].up.onlyUpstream {
			closeBody(r)
			return nil, ErrOtherHost
		}
	}
	return j.other.RoundTrip(r)
}

// CloseIdleConnections closes the connections that no request uses.
func (j *joined) CloseIdleConnections() {
	for _, t := range j.transports {
		t.CloseIdleConnections()
	}
}
