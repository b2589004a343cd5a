package balancer

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// Server is one server line of an upstream block.
type Server = peer.Server

// Labels are what a user notes of a server: Labels{}.With("rack", "r7").
type Labels = peer.Labels

// TextKind is what a text is that Config.Redact may replace.
type TextKind = peer.TextKind

// The kinds of texts; see peer.
const (
	TextKey    = peer.TextKey
	TextClient = peer.TextClient
	TextHint   = peer.TextHint
	TextAddr   = peer.TextAddr
	TextLabel  = peer.TextLabel
	TextError  = peer.TextError
)

// Zeros that are not the default. NoMaxFails and NoFailTimeout are for a Server.
const (
	NoMaxFails    = peer.NoMaxFails
	NoFailTimeout = peer.NoFailTimeout
	// NoKeepalive as Config.Keepalive, or as Config.KeepaliveTimeout, keeps no idle
	// connection.
	NoKeepalive = -1
	// NeverCounts as Retry.DeadlineCounts never counts a caller's deadline.
	NeverCounts time.Duration = -1
)

// ConfigError says which field was refused, and why.
type ConfigError = peer.ConfigError

// Config is an upstream block as a Go value. The zero value of every field is
// nginx's default. New copies it; changing it afterwards has no effect.
type Config struct {
	// Name is the upstream's name: the host of the URLs that are balanced,
	// compared without case, whatever port the URL names.
	Name string
	// Servers are the server lines, in order. At least one must not be a backup.
	Servers []Server
	// Method chooses the peer. nil: round robin.
	Method peer.Method
	// Sticky binds clients to peers over any Method: sticky.Cookie,
	// sticky.Route or sticky.Learn. nil: no binding.
	Sticky sticky.Sticky
	// Retry says which failures are passed on to another peer, which count
	// against the peer, and how long a peer may take.
	Retry Retry
	// Keepalive is the number of idle connections kept to each peer (nginx
	// counts them per block). 0: what the http.Transport says, else 32.
	// NoKeepalive: none; of HTTP/2, whose requests share a connection, it is closed
	// 100 ms after the last one.
	Keepalive int
	// KeepaliveTimeout is how long a connection to a peer may be idle before it is
	// closed (keepalive_timeout). 0: what the http.Transport says
	// (IdleConnTimeout), else nginx's 60 s. NoKeepalive: none is kept, which is
	// nginx's keepalive_timeout 0.
	KeepaliveTimeout time.Duration
	// Input makes the key, client address and hint of an HTTP request; its
	// fields that are left empty come from the method's variables. It is
	// called by many goroutines, and must not change the request.
	Input func(*http.Request) Input
	// Variables are variables of the user's own, by name without the dollar
	// sign, beside those of nginx that balancer knows, which they may also replace:
	// $arg_NAME, $args, $binary_remote_addr, $content_length, $content_type,
	// $cookie_NAME, $document_uri, $host, $http_NAME, $https, $is_args,
	// $proxy_add_x_forwarded_for, $query_string, $remote_addr, $remote_port,
	// $remote_user, $request, $request_method, $request_uri, $scheme,
	// $server_protocol, $uri and, of the answer, $upstream_cookie_NAME and
	// $upstream_http_NAME. Goroutines call them at the same time.
	Variables map[string]func(*http.Request) string
	// Resolver looks up the host names in Servers: once, in New or when
	// Update brings the name, and those with Resolve again and again. nil:
	// net.DefaultResolver. NoLookup: names are left to the dialler. Numeric
	// addresses and unix sockets never reach it.
	Resolver Resolver
	// ResolveInterval is the time between two look-ups of the names with
	// Resolve, up to a tenth more or less, so that processes do not ask
	// together. net.Resolver does not say how long an answer is valid, so this
	// is what the valid parameter of nginx's resolver is. 0: 30 s.
	ResolveInterval time.Duration
	// ResolveTimeout is how long one look-up of a name may take, in New and Update
	// too; for a service, its hosts included. 0: 30 s, as nginx's resolver_timeout.
	ResolveTimeout time.Duration
	// ResolveNetwork is the kind of addresses that names with Resolve are looked up
	// for: "ip4" (nginx's resolver with ipv6=off), "ip6" (ipv4=off), or "ip" for both.
	// Empty: "ip".
	ResolveNetwork string
	// Dial dials a peer for DialContext; network is as DialContext got it, or
	// "unix" or "unixgram" for a peer on a socket. nil: a net.Dialer's DialContext.
	// RoundTripper dials as its base does.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// OnlyUpstream refuses requests whose URL names another host, with
	// ErrOtherHost. Otherwise they go to the base transport unchanged: an
	// http.Client follows redirects through the same transport.
	OnlyUpstream bool
	// KeepRedirects leaves alone the Location of an answer that points to the
	// peer's own address. Otherwise it is turned back to the logical name.
	KeepRedirects bool
	// Policy changes what a failure costs a peer, and how it comes back. The
	// zero value is nginx's way.
	Policy peer.Policy
	// RandomStart begins at a random point of the cycle of picks, so that many
	// fresh processes do not all begin with the first peer.
	RandomStart bool
	// Nginx sets what trunk does otherwise than nginx back to nginx's way.
	Nginx Nginx
	// Explain says of which choices Decisions are wanted.
	Explain Explain
	// OnEvent is called with each event of peers, set and names, in order, outside of
	// locks, by one goroutine at a time: one of those that make requests, change the
	// set or look names up. A slow hook delays only that one, while up to 1024 events
	// wait; what finds no room is counted (Event.Dropped, Snapshot.EventsDropped). A
	// panic of it is recovered and counted (Snapshot.HookPanics), and the first
	// one kept (HookPanic). nil: events are discarded.
	OnEvent func(Event)
	// Record is written everything that is asked of the peers, to be played
	// again (package recording). It costs a fraction of a microsecond per request and
	// peer of the upstream, and holds keys, addresses and sids, as Redact leaves
	// them. An error or a panic of it ends the recording and nothing else; FlushRecord
	// and Close report it. nil: nothing is recorded.
	Record io.Writer
	// Redact, if not nil, replaces the texts of each TextKind that Explain.OnDecision,
	// OnEvent and Record get. A sid that is not a route is the MD5 of an address, so
	// that a function that hides one should hide both. What the program asks for itself
	// is not redacted: WithDecisions, errors, AttemptLog, and Snapshot, which has a
	// Redacted of its own.
	//
	// It is called by goroutines at the same time, without a lock, and must give the
	// same for the same. With Record it must also give different addresses, and
	// different sids, something different, as a keyed hash does: New refuses
	// what does not. See recording.WriterOptions for what can be replayed. A panic
	// of it costs the Decision or event, or ends the recording (in New it is New's error): nothing
	// unredacted is emitted.
	Redact func(kind TextKind, text string) string
	// Warnings are those of the text from which package nginxconf has read the
	// configuration. New only reports them, in Upstream.Warnings.
	Warnings []Warning
	// Clock returns the time since the Unix epoch; see peer.Options. Here
	// goroutines call it at the same time.
	// It times failures, tries and budgets; timeouts of the network run on
	// the real clock. nil: wall time at construction plus monotonic time since.
	Clock func() time.Duration
	// Source is the source of random numbers; see peer.Options. nil: seeded
	// per process.
	Source rand.Source
	// Resolution is the unit in which failures are timed; see peer.Options.
	// 0: one second, as in nginx.
	Resolution time.Duration
}

// Retry is nginx's proxy_next_upstream and the timeouts beside it, and what
// trunk offers beyond it (docs/parity.md, section 8).
type Retry struct {
	// On are the kinds of failure that go to the next peer. 0: nginx's
	// default, KindError|KindTimeout.
	On Kind
	// Off passes nothing on: one peer is asked, once (proxy_next_upstream off).
	Off bool
	// NonIdempotent lets POST, LOCK and PATCH be passed on too after they were sent.
	NonIdempotent bool
	// Tries limits the peers that one request is given to
	// (proxy_next_upstream_tries). 0: all that are not down, so that one
	// request can cost as many tries as there are peers.
	Tries int
	// Again lets one peer be asked more than once where Tries are left and all peers
	// were tried: the request begins again, with all peers that are not out.
	Again bool
	// Executions limits how often one request may reach a peer that may process it:
	// answered or not, on whichever peer, repeats over a new connection included. A
	// connection that did not come about does not count, nor does a stream that the
	// peer has refused. 0: Tries, and one repeat for each peer, where its connection
	// had died or its stream was not processed; NginxParity: as in nginx.
	Executions int
	// Timeout limits the time from the first try in which another peer may be
	// asked (proxy_next_upstream_timeout). 0: no limit.
	Timeout time.Duration
	// ConnectTimeout, SendTimeout and ReadTimeout hold for one try
	// (proxy_connect_timeout, proxy_send_timeout, proxy_read_timeout): to the
	// connection, TLS included; between two writes; and from the request sent
	// to the response header. 0: what the http.Transport says, else nginx's
	// 60 s. They are the peer's limits, and their expiry is KindTimeout; the
	// caller's own deadline is in the request's context (see DeadlineCounts).
	// A body that stalls is not timed: streams do.
	ConnectTimeout, SendTimeout, ReadTimeout time.Duration

	// Counts are the kinds that count as a failure of the peer. 0: as in
	// nginx, error, timeout and invalid header always, and a status when it
	// is passed on to another peer (403 and 404 never). Otherwise exactly
	// those named count, passed on or not: KindError alone keeps a peer that
	// is slow or answers 504 in; KindHTTP500 also counts the 500 to a POST
	// that no other peer may get. Nothing counts against a server with
	// MaxFails NoMaxFails.
	Counts Kind
	// DeadlineCounts is how long a try must have had before the caller's own
	// deadline, expiring on a peer that has not answered, counts as that
	// peer's timeout; a shorter try is Abandoned. 0: 5 s, which is longer
	// than the deadlines of quick calls, so that these do not take healthy
	// peers out, and shorter than the 10 and 30 s usual as http.Client.Timeout,
	// so that a peer that hangs is found out. NeverCounts: such a try is always
	// Abandoned; nginx knows no deadlines of clients.
	DeadlineCounts time.Duration
	// BufferBody is how many bytes of a request body without GetBody are
	// remembered while they are sent, so that the request can be sent again.
	// 0: none; such a request goes on only while its body has not been read.
	BufferBody int64
	// BufferFirst reads up to BufferBody bytes before a peer is chosen, as
	// nginx does (proxy_request_buffering on): slow clients hold no peer.
	BufferFirst bool
	// KeepBackup keeps the last try for the backup group, where Tries would end a
	// request before it gets there.
	KeepBackup bool
	// Budget bounds the retries of all requests together. The zero value: no bound.
	Budget Budget
	// LastAnswer gives the caller the last answer that was not delivered, where
	// the request would otherwise end in an error of trunk's own. nginx
	// forgets that answer, and says 502.
	LastAnswer bool
}

// Nginx is what trunk does otherwise than nginx above the choice of peers, each
// to be set back (docs/parity.md, "What differs"). NginxParity sets all.
type Nginx struct {
	// CancelIsOK frees the peer OK when the caller goes away before the
	// response header, so that an abandoned probe heals its peer. Otherwise
	// it is freed Abandoned: nothing is known about the peer.
	CancelIsOK bool
	// StaleIsFailure takes a kept-alive connection that turns out to be dead as
	// a failure of the peer, which gives the try back. Otherwise it is no failure,
	// and an idempotent request is sent to the same peer once more.
	StaleIsFailure bool
	// EveryStream counts one failure for each request on a broken HTTP/2
	// connection. Otherwise the connection counts once.
	EveryStream bool
	// CloseUnread closes the connection of an answer that is not delivered.
	// Otherwise a short rest of it is read, so that the connection can be
	// used again.
	CloseUnread bool
}

// NginxParity returns the configuration with everything that trunk does
// otherwise than nginx, above the choice of peers, set to nginx's way: the
// fields of Nginx, no caller's deadline counted, Locations left alone
// (KeepRedirects), and request bodies read before a peer is chosen, up to 1 MiB
// (nginx's client_max_body_size) unless Retry.BufferBody says otherwise.
func NginxParity(c Config) Config {
	c.Nginx = Nginx{CancelIsOK: true, StaleIsFailure: true, EveryStream: true, CloseUnread: true}
	c.KeepRedirects = true
	c.Retry.DeadlineCounts = NeverCounts
	c.Retry.BufferFirst = true
	if c.Retry.BufferBody == 0 {
		c.Retry.BufferBody = 1 << 20
	}
	return c
}

// Input is what a request brings to the choice of its peer. Fields that are
// left empty are filled in from the next source: Start's Input or WithInput,
// then Config.Input, then the variables of the method.
type Input struct {
	// Key is what hash hashes. Other methods do not look at it.
	Key string
	// Client is the client's address, for ip_hash and for $remote_addr and
	// $binary_remote_addr. An IPv4 address mapped into IPv6 counts as IPv4.
	Client netip.Addr
	// Hint is the sid of the peer that the client is bound to; see Peer.SID.
	Hint string
}
