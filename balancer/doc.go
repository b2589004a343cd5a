// Package balancer is nginx's upstream block as a Go value: it balances HTTP
// requests, or anything else, over peers as nginx would, bit for bit.
//
//	up, err := balancer.New(ctx, balancer.Config{
//		Name:    "backend",
//		Servers: []balancer.Server{{Addr: "10.0.0.1:8080", Weight: 5}, {Addr: "10.0.0.2:8080"}},
//	})
//	client := &http.Client{Transport: up.RoundTripper(nil)}
//	resp, err := client.Get("http://backend/hello")
//
// # Ways in
//
// [Upstream.RoundTripper] sends requests whose URL names the upstream to its peers; what
// fails goes to another peer as nginx's proxy_next_upstream has it ([Retry]). Behind an
// httputil.ReverseProxy, [ErrorHandler] answers with nginx's status. [Upstream.DialContext]
// is for connections, and [Upstream.Start] is the same loop with the sending left to the
// caller. Package nginxconf makes an Upstream of the text of an upstream block.
//
// [Upstream.Update], [Upstream.UpdateServer] and their kin change the servers meanwhile, and
// [Upstream.WaitDrained] waits until one has no requests in flight. Server.Resolve
// keeps the peers behind a name in step with DNS. See docs/membership.md. Close ends an
// upstream at once, and [Upstream.Shutdown] when its requests have ended.
//
// # Choosing
//
// Config.Method is one of roundrobin, leastconn, leasttime, hash, iphash and random.
// Variables in the text that hash takes ("$host$request_uri") are looked up in the
// request; [WithInput] and Config.Input go before these. Config.Sticky binds a client to
// its peer, over any method. [Policy], [Retry] and the fields of the methods hold the
// remedies for nginx's quirks; [NginxParity] sets back what differs by default.
//
// # Looking in
//
// A request without an answer ends in an [*Error], which lists the attempts; so does an
// [AttemptLog] in its context. [Upstream.Snapshot] is the whole state, Config.OnEvent
// reports changes, and a [Decision] explains one choice ([WithDecisions], [Explain]).
// Config.Record writes a recording that package recording can replay. [Lint] reports
// configurations that are valid but probably unintended. Package balancertest is a kit
// for unit tests of routing logic.
package balancer
