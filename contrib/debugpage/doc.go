// Package debugpage shows what upstreams are doing, as a web page: the peers and
// their state, the share each was to get and the share it got, current and
// effective weight over the last picks as a chart, the last decisions and events.
//
// It is mounted like net/http/pprof, and needs nothing from elsewhere:
//
//	page := debugpage.New(nil)
//	panel := page.Panel("backend") // before the upstream, so that its hooks can be given
//	up, err := balancer.New(ctx, balancer.Config{..., OnEvent: panel.Event,
//		Explain: balancer.Explain{Share: 1, OnDecision: panel.Decision}})
//	panel.Watch(up)
//	http.Handle("/debug/upstreams/", page)
//
// Decisions come from whoever makes them: Panel.Decision is a hook for
// explained gets. Without them the page still has the table and the events.
//
// The page works without JavaScript, which only adds that it refreshes itself
// and that the chart can be read point by point. With ?format=json the same
// comes as JSON, with ?q=text only what concerns peers with that text, and with
// ?upstream=name one panel.
//
// The page only reads, but it shows addresses and keys to whoever can reach
// it: mount it where only operators come, and see Options.Redact. Under a name other
// than localhost it answers only where Options.Hosts allows that.
package debugpage
