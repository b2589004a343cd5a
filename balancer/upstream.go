package balancer

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// Upstream is an upstream block at work. Goroutines may share it.
type Upstream struct {
	name      string
	peers     *peer.Upstream
	clock     func() time.Duration
	now       atomic.Int64 // what peers last read from clock
	retry     Retry        // with the defaults that do not depend on the transport
	nginx     Nginx
	keepalive int
	budget    *budget
	sticky    *binder // nil: none
	inputs    inputs
	// needsClient says that the method is ip_hash, eventful that it wants to
	// hear of response headers.
	needsClient   bool
	eventful      atomic.Bool
	onlyUpstream  bool
	keepRedirects bool
	warnings      []Warning

	pool   sync.Pool // of *exchange
	closed atomic.Bool
	mu     sync.Mutex
	ends   []*endpoint  // all peers, in list order
	bases  []*transport // all RoundTrippers
}

// New makes an upstream. The context is for looking up the host names in
// c.Servers; the upstream does not live in it. The error is a *ConfigError, a
// *ResolveError, or what the method says of its servers.
func New(ctx context.Context, c Config) (*Upstream, error) {
	retry, err := c.Retry.normalized()
	if err != nil {
		return nil, err
	}
	if c.Keepalive < NoKeepalive {
		return nil, &ConfigError{Server: -1, Field: "Keepalive", Value: c.Keepalive, Reason: "must be at least 0, or NoKeepalive"}
	}
	servers, err := resolve(ctx, c.Resolver, c.Servers)
	if err != nil {
		return nil, err
	}
	u := &Upstream{
		name: c.Name, clock: c.Clock, retry: retry, nginx: c.Nginx, keepalive: c.Keepalive,
		budget: newBudget(retry.Budget), onlyUpstream: c.OnlyUpstream, keepRedirects: c.KeepRedirects,
	}
	if u.clock == nil {
		u.clock = wallClock()
	}
	clock := func() time.Duration {
		d := u.clock()
		u.now.Store(int64(d))
		return d
	}
	if u.sticky, err = newBinder(&c, u.clock); err != nil {
		return nil, err
	}
	method := c.Method
	if method != nil {
		method = watched{method, &u.eventful}
	}
	if c.Sticky != nil {
		method = sticky.Over(method)
	}
	u.peers, err = peer.New(servers, method, &peer.Options{
		Clock: clock, Source: c.Source, Resolution: c.Resolution, Policy: c.Policy, RandomStart: c.RandomStart,
		Attach: func(s Server) any { return u.attach(s) },
	})
	if err != nil {
		return nil, err
	}
	if u.inputs, err = newInputs(&c); err != nil {
		return nil, err
	}
	u.warnings = Lint(c)
	if u.inputs.client && c.Input == nil {
		u.warnings = append(u.warnings, Warning{
			Code: CodeClientAddress, Upstream: c.Name,
			Message: "ip_hash knows the client only by Request.RemoteAddr, which a server sets (and httputil.ReverseProxy passes on)",
			Hint:    "give Input.Client with Config.Input, WithInput or Start; requests with neither fail",
		})
	}
	u.pool.New = func() any { return newExchange(u) }
	return u, nil
}

// CodeClientAddress is a warning of New: requests that do not come from a server
// must bring the client's address along.
const CodeClientAddress Code = "client-address"

// Warnings returns what works, but hardly as intended: Lint's warnings of the
// configuration, and New's own.
func (u *Upstream) Warnings() []Warning { return append([]Warning(nil), u.warnings...) }

// watched is a method whose selector is asked whether it wants events.
type watched struct {
	peer.Method
	eventful *atomic.Bool
}

func (w watched) Build(s *peer.Set) (peer.Selector, error) {
	sel, err := w.Method.Build(s)
	_, events := sel.(peer.Events)
	w.eventful.Store(events)
	return sel, err
}

// wallClock is peer's default clock, shared with it.
func wallClock() func() time.Duration {
	start := time.Now()
	epoch := time.Duration(start.UnixNano())
	return func() time.Duration { return epoch + time.Since(start) }
}

// Name returns the upstream's name.
func (u *Upstream) Name() string { return u.name }

// Close lets no further request in (ErrClosed), and closes the idle connections.
// Requests that hold a peer go on to their end. It may be called more than once,
// and returns nil.
func (u *Upstream) Close() error {
	u.closed.Store(true)
	u.CloseIdleConnections()
	return nil
}

// CloseIdleConnections closes the connections to peers that no request uses.
func (u *Upstream) CloseIdleConnections() {
	for _, e := range u.endpoints() {
		e.closeIdle()
	}
}

// attach makes what is kept of a peer that is new.
func (u *Upstream) attach(s Server) *endpoint {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := newEndpoint(s)
	for _, t := range u.bases {
		e.addRoute(t.newRoute(e))
	}
	u.ends = append(u.ends, e)
	return e
}

func (u *Upstream) endpoints() []*endpoint {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ends[:len(u.ends):len(u.ends)]
}

// named reports whether a URL's host is the upstream's name.
func (u *Upstream) named(r *url.URL) bool {
	return r.Host == u.name || strings.EqualFold(r.Hostname(), u.name) || strings.EqualFold(r.Host, u.name)
}

// PeerState is a peer and its state at one moment.
type PeerState struct {
	peer.Peer
	peer.State
	// OldestHeld is for how long the peer has been held by the request that
	// has held it longest; 0: by none. A response body that was never closed
	// shows here.
	OldestHeld time.Duration
}

// State returns the peers with their state: the primary group, then the backups,
// each in list order. nil for a nil Upstream.
func (u *Upstream) State() []PeerState {
	if u == nil {
		return nil
	}
	ends := u.endpoints()
	var out []PeerState
	for i, p := range u.peers.Snapshot().Peers {
		s := PeerState{Peer: p.Peer, State: p.State}
		if since, held := ends[i].oldest(); held {
			s.OldestHeld = max(u.clock()-since, 1)
		}
		out = append(out, s)
	}
	return out
}
