package balancer

import (
	"sync"
	"sync/atomic"
	"time"
)

// endpoint is what balancer keeps of a peer: where to dial, and who holds it,
// in the order of their taking. Goroutines may share it.
type endpoint struct {
	server Server // as it was when the peer was new
	// h2 says that the peer has answered in HTTP/2; breaks counts the
	// connections that its side has ended.
	h2     atomic.Bool
	breaks atomic.Int64

	// routes are the ways to the peer, one for each RoundTripper of the upstream.
	routes atomic.Pointer[[]route]

	mu sync.Mutex
	// The list is a ring through root, the oldest first.
	root dispatch
}

func newEndpoint(s Server) *endpoint {
	e := &endpoint{server: s}
	e.root.prev, e.root.next = &e.root, &e.root
	return e
}

// route returns the way to the peer under a RoundTripper.
func (e *endpoint) route(t *transport) route { return (*e.routes.Load())[t.index] }

// addRoute makes the way to the peer under another RoundTripper. One call at a time.
func (e *endpoint) addRoute(r route) {
	var routes []route
	if old := e.routes.Load(); old != nil {
		routes = *old
	}
	routes = append(routes[:len(routes):len(routes)], r)
	e.routes.Store(&routes)
}

// closeIdle closes the connections to the peer that no request uses.
func (e *endpoint) closeIdle() {
	if routes := e.routes.Load(); routes != nil {
		for _, r := range *routes {
			r.closeIdle()
		}
	}
}

// hold notes that d holds the peer.
func (e *endpoint) hold(d *dispatch) {
	e.mu.Lock()
	d.prev, d.next = e.root.prev, &e.root
	d.prev.next, e.root.prev = d, d
	e.mu.Unlock()
}

// drop notes that d holds it no longer.
func (e *endpoint) drop(d *dispatch) {
	e.mu.Lock()
	d.prev.next, d.next.prev = d.next, d.prev
	d.prev, d.next = nil, nil
	e.mu.Unlock()
}

// oldest returns when the peer was got by the request that has held it longest.
func (e *endpoint) oldest() (since time.Duration, held bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.root.next == &e.root {
		return 0, false
	}
	return e.root.next.since, true
}
