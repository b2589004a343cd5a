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
// httputil.ReverseProxy, ErrorHandler answers with nginx's status, and a Log in
// the request's context (WithLog) has $upstream_addr and $upstream_status.
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
// Update, Add, Remove and Change change the servers of a live upstream; Drained waits
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
// # Errors
//
// A request without an answer ends in an *Error, which lists the attempts.
// errors.Is(err, ErrNoLivePeers) tells that no peer could be had, StatusCode what
// nginx would have answered.
package balancer
