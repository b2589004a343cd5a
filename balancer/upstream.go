package balancer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/internal/ascii"
	"github.com/trunklb/trunk/internal/guard"
	"github.com/trunklb/trunk/internal/wallclock"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
	"github.com/trunklb/trunk/sticky"
)

// Upstream is an upstream block at work. Goroutines may share it.
type Upstream struct {
	name          string
	peers         *peer.Upstream
	clock         func() time.Duration
	now           atomic.Int64 // what peers last read from clock
	retry         Retry        // with the defaults that do not depend on the transport
	nginx         Nginx
	keepalive     keepalive
	budget        *budget
	sticky        *binder // nil: none
	inputs        inputs
	onlyUpstream  bool
	keepRedirects bool
	explain       Explain
	explained     atomic.Uint64                 // the part of a Decision that is due
	hooks         guard.Guard                   // of OnDecision; peer has that of OnEvent
	redact        func(TextKind, string) string // nil: nothing is
	warnings      []Warning
	recorder      *recording.Writer // nil: nothing is recorded

	pool   sync.Pool // of *exchange
	closed atomic.Bool
	mu     sync.Mutex
	ends   roster
	bases  []base // all RoundTrippers

	// changing is held while the set of peers changes. No hook, look-up or
	// request runs under it. It is taken before mu.
	changing sync.Mutex
	lines    atomic.Pointer[lines]
	names    names
	lookups  lookups
	idles    idles
	dial     dialFunc // of DialContext
	method   peer.Description
}

// New makes an upstream. The context is for looking up the host names in
// c.Servers; the upstream does not live in it. It has a goroutine only if names
// are looked up again (Server.Resolve), which ends with Close. The error is a
// *ConfigError, a *ResolveError, or what the method says of its servers.
func New(ctx context.Context, c Config) (*Upstream, error) {
	retry, err := c.Retry.normalized()
	if err != nil {
		return nil, err
	}
	if err := c.Explain.check(); err != nil {
		return nil, err
	}
	keep, err := newKeepalive(&c)
	if err != nil {
		return nil, err
	}
	if err := c.checkLookups(); err != nil {
		return nil, err
	}
	names := names{resolver: c.Resolver, network: cmp.Or(c.ResolveNetwork, "ip"), timeout: cmpDuration(c.ResolveTimeout, defaultLookup)}
	if names.resolver == nil {
		names.resolver = net.DefaultResolver
	}
	given, err := names.first(ctx, c.Servers)
	if err != nil {
		return nil, err
	}
	u := &Upstream{
		name: c.Name, clock: c.Clock, retry: retry, nginx: c.Nginx, keepalive: keep,
		budget: newBudget(retry.Budget), onlyUpstream: c.OnlyUpstream, keepRedirects: c.KeepRedirects,
		explain: c.Explain, redact: c.Redact, names: names, lookups: newLookups(&c), dial: c.Dial, method: peer.Describe(c.Method),
	}
	if u.clock == nil {
		u.clock = wallclock.New() // peers and budgets share it
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
	if c.Sticky != nil {
		method = sticky.Over(method)
	}
	options := &peer.Options{
		Clock: clock, Source: c.Source, Resolution: c.Resolution, Policy: c.Policy, RandomStart: c.RandomStart,
		OnEvent: redacting(c.OnEvent, c.Redact),
		Attach:  func(s Server) any { return u.attach(s) },
		OnIdle:  u.idle,
	}
	if c.Record != nil {
		u.recorder = newRecorder(&c)
		options.Record = u.recorder
	}
	u.peers, err = peer.New(given.servers, method, options)
	if err != nil {
		return nil, given.blame(err)
	}
	u.follow()
	u.lines.Store(&lines{slices.Clone(c.Servers)})
	u.names.keep(given.answers)
	if u.inputs, err = newInputs(&c); err != nil {
		return nil, err
	}
	u.warnings = warningsOf(&c)
	if u.inputs.client && c.Input == nil {
		u.warnings = append(u.warnings, Warning{
			Code: CodeClientAddress, Upstream: c.Name,
			Message: u.method.Name + " knows the client only by Request.RemoteAddr, which a server sets (and httputil.ReverseProxy passes on)",
			Hint:    "give Input.Client with Config.Input, WithInput or Start; requests with neither fail",
		})
	}
	if err := checkHost(c.Name); err != nil {
		u.warnings = append(u.warnings, Warning{
			Code: CodeName, Upstream: c.Name, Word: c.Name,
			Message: fmt.Sprintf("the name %q is the host of no URL: RoundTripper refuses it, and only Start and DialContext balance", c.Name),
			Hint:    "write the host of the URLs as Name, without scheme, port and path",
		})
	}
	u.watchNames()
	return u, nil
}

// warningsOf are those of the text, which have lines, and those of Lint that are not
// among them.
func warningsOf(c *Config) []Warning {
	all := slices.Clone(c.Warnings)
	for _, w := range Lint(*c) {
		if !slices.ContainsFunc(all, func(t Warning) bool { return t.Code == w.Code && t.Message == w.Message }) {
			all = append(all, w)
		}
	}
	return all
}

// Warnings returns what works, but hardly as intended: the warnings of the text from
// which the configuration was read, if any, those of [Lint], and those of New itself.
func (u *Upstream) Warnings() []Warning { return append([]Warning(nil), u.warnings...) }

// Name returns the upstream's name.
func (u *Upstream) Name() string { return u.name }

// Close lets no further request and no change in (ErrClosed), ends the looking up
// of names, and closes the idle connections. It does not wait: requests that hold a
// peer go on to their end, and their connections are closed then. It may be called
// more than once. The error is why the recording of Config.Record has ended
// early, if it has; what happens from now on is not recorded. [Upstream.Shutdown] waits.
func (u *Upstream) Close() error {
	u.stop()
	return u.endRecording()
}

// Shutdown is Close, and waits until no request holds a peer any more, or until ctx
// ends; what happens until then is recorded. A request that would be retried on another
// peer ends in ErrClosed. Connections of DialContext hold their peer until they are
// closed. It may be called more than once, and after Close. The error is the context's
// cause if that ended the waiting, joined with the error of Close.
func (u *Upstream) Shutdown(ctx context.Context) error {
	u.stop()
	for {
		again := u.idles.wait()
		if u.held() == 0 {
			return u.endRecording()
		}
		select {
		case <-again:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), u.endRecording())
		}
	}
}

// stop lets no further request and no change in, and closes what no request uses.
func (u *Upstream) stop() {
	u.closed.Store(true)
	u.lookups.end()
	for _, e := range u.endpoints() {
		e.remove()
	}
}

// endRecording ends the recording, and returns why it had ended before, if it had.
func (u *Upstream) endRecording() error {
	if u.recorder == nil {
		return nil
	}
	return u.recorder.Close()
}

// CloseIdleConnections closes the connections to peers that no request uses.
func (u *Upstream) CloseIdleConnections() {
	for _, e := range u.endpoints() {
		e.closeIdle()
	}
}

// named reports whether a URL's host is the upstream's name.
func (u *Upstream) named(r *url.URL) bool {
	return r.Host == u.name || ascii.EqualFold(r.Hostname(), u.name) || ascii.EqualFold(r.Host, u.name)
}
