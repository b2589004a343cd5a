// Package balancer is nginx's upstream block as a Go value: it balances HTTP
// requests, or anything else, over peers as nginx would, bit for bit.
//
// # Requests of an http.Client
//
// New makes an Upstream of a Config, and RoundTripper a transport of it:
//
//	up, err := balancer.New(ctx, balancer.Config{
//		Name:    "backend",
//		Servers: []balancer.Server{{Addr: "10.0.0.1:8080", Weight: 5}, {Addr: "10.0.0.2:8080"}},
//	})
//	client := &http.Client{Transport: up.RoundTripper(nil)}
//	resp, err := client.Get("http://backend/hello")
//
// Requests whose URL names the upstream go to its peers; what fails goes on to
// another peer as nginx's proxy_next_upstream would have it (Retry). Behind an
// httputil.ReverseProxy, ErrorHandler answers with nginx's status, and an AttemptLog in
// the request's context (WithLog) has $upstream_addr and $upstream_status.
//
// # From nginx's configuration
//
// Package nginxconf makes an Upstream of the text of an upstream block, or Configs of a
// whole configuration, and writes a Config as a block. [Lint], and [Upstream.Warnings],
// report configurations that are valid but probably unintended.
//
// # Any other protocol
//
// Start is the same loop with the sending left to the caller; see Try.
//
// For connections there is DialContext, in the place of a net.Dialer's: TCP, UDP and
// unix sockets, with a peer that is held until the connection is closed.
//
// # A set that changes
//
// Update, Add, Remove and UpdateServer change the servers of a live upstream; WaitDrained waits
// until a server that is to go has nothing to do any more. Server.Resolve and
// Server.Service keep the peers behind a name in step with DNS. No request is lost by it:
// docs/membership.md tells what becomes of whom. Close ends an upstream.
//
// # Choosing
//
// Config.Method is one of roundrobin, leastconn, leasttime, hash, iphash, random.
// Methods that hash a text with nginx's variables in it ("$host$request_uri") have
// them looked up in the request; WithInput and Config.Input go before these.
//
// Config.Sticky binds a client to the peer that it has got, over any method: a cookie
// (sticky.Cookie), a route (sticky.Route), or a session learned from the answers
// (sticky.Learn). With Start the binding is the caller's: remember Peer.SID, and
// give it as Input.Hint.
//
// Config.Policy, Config.Retry and the fields of the methods hold the remedies for nginx's
// quirks; the zero value is nginx's way. NginxParity sets back what differs by default.
//
// # Errors
//
// A request without an answer ends in an *Error, which lists the attempts.
// errors.Is(err, ErrNoLivePeers) tells that no peer could be had, StatusCode what
// nginx would have answered.
//
// # Looking in
//
// Upstream.Snapshot is the whole state at one moment, with counters that add up,
// for expvar or a page. Config.OnEvent tells what happens as it happens, ready for
// log/slog: who failed, was ejected, probed, came back; that the set or a name has
// changed; that nobody was live, and why.
//
// Why a request went where it went is a Decision: of one request by WithDecisions, of a
// share of all by Config.Explain. Config.Record writes down what was asked of the
// peers, and package recording plays it again, as a test case. Config.Redact
// replaces keys and addresses in all that leaves so. docs/explain.md has a story.
//
// # In tests
//
// Package balancertest is a kit for unit tests of routing logic: an upstream on a
// fake clock, whose picks are told by name.
package balancer
