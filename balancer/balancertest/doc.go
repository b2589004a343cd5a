// Package balancertest lets a unit test say what a load balancer is to do, and
// have it checked to the single pick, without sockets and without waiting:
//
//	func TestRouting(t *testing.T) {
//		lb := balancertest.New(t, `upstream u { server a weight=5; server b; server c; }`)
//		lb.WantPicks("a a b a c a a")
//		lb.Fail("a")
//		lb.WantNone("a", 10*time.Second) // fail_timeout
//		lb.Advance(11 * time.Second)
//		lb.WantShare(700, "a", 5.0/7, .01)
//	}
//
// The upstream is the real one, on a fake clock and with a seeded source of
// random numbers: the same test makes the same picks every time. Servers may
// have any names; none is looked up. A wrong expectation's message says how the
// pick that differs was decided.
//
// # Real requests
//
// Backends are scripted peers below an http.Client, for what lies above the
// choice: retries, timeouts, bodies that break off.
//
//	backends := lb.Backends().
//		Script("a", balancertest.Answer{Err: balancertest.Refused}).
//		Script("b", balancertest.Answer{Body: "hello"})
//	client := &http.Client{Transport: lb.Upstream().RoundTripper(backends)}
//	resp, err := client.Get("http://u/")
//	backends.WantAsked("a b")
//
// # Time
//
// The fake clock moves only by Advance, WantNone, Recover and the delays
// of Backends. Deadlines of contexts and clients do not run on it. Where they
// matter, use a bubble of testing/synctest, and its clock: see Bubble.
package balancertest
