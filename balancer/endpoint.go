package balancer

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// endpoint is what balancer keeps of a peer: where to dial, the connections to
// it, and who holds it, in the order of their taking. It lives as long as the
// peer: an address that is removed and added again has a new one. Goroutines
// may share it.
type endpoint struct {
	// info is the peer's present configuration. Its Addr never changes.
	info atomic.Pointer[Server]
	// h2 says that the peer has answered in HTTP/2.
	h2 atomic.Bool

	// routes are the ways to the peer, one for each RoundTripper of the upstream.
	routes atomic.Pointer[[]way]

	mu sync.Mutex
	// first is the oldest in the list, and last the newest.
	first, last *dispatch
	// users are those in the list, and the kept answers whose bodies may be read yet.
	users int
	// conns are the open connections that trunk has dialled for its
	// RoundTrippers.
	conns map[net.Conn]struct{}
	// removed: the peer is removed, or the upstream closed. No request gets the peer any
	// more, and with its last user its connections go.
	removed bool
}

func newEndpoint(s Server) *endpoint {
	e := &endpoint{}
	e.info.Store(&s)
	return e
}

// configure gives the peer another configuration, if it is another.
func (e *endpoint) configure(s Server) {
	if *e.server() != s {
		e.info.Store(&s)
	}
}

// server returns the peer's configuration.
func (e *endpoint) server() *Server { return e.info.Load() }

// A base makes the ways to new peers for one RoundTripper, and a way is all that an
// endpoint knows of them. Both are interfaces that name nothing of HTTP, so that a
// program without a RoundTripper does not link net/http's client.
type (
	base interface{ newRoute(*endpoint) way }
	way  interface {
		// closeIdle closes the connections that no request uses.
		closeIdle()
	}
)

// way returns the way to the peer under a RoundTripper.
func (e *endpoint) way(index int) way { return (*e.routes.Load())[index] }

// addRoute makes the way to the peer under another RoundTripper. One call at a time.
func (e *endpoint) addRoute(r way) {
	var routes []way
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

// remove takes the peer out of use. Its connections are closed: those that are
// idle now, and all that are left when its last use ends.
func (e *endpoint) remove() {
	e.mu.Lock()
	e.removed = true
	e.mu.Unlock()
	e.hangUp()
}

// hangUp closes the connections of a removed peer that no request uses. Without users that
// is all of them, also those that a transport does not count as idle yet: HTTP/2 takes a
// stream off its connection a little after the reader has got the end of its body.
func (e *endpoint) hangUp() {
	e.closeIdle()
	var rest map[net.Conn]struct{}
	e.mu.Lock()
	if e.users == 0 {
		rest, e.conns = e.conns, nil
	}
	e.mu.Unlock()
	for c := range rest {
		c.Close()
	}
}

// opened notes a connection. It reports false if it comes too late for any request: its
// transport was still dialling, and the peer is removed.
func (e *endpoint) opened(c net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.removed && e.users == 0 {
		return false
	}
	if e.conns == nil {
		e.conns = map[net.Conn]struct{}{}
	}
	e.conns[c] = struct{}{}
	return true
}

// closed notes that a connection is closed.
func (e *endpoint) closed(c net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c)
}

// hold notes that d holds the peer. It reports false if the peer is removed.
func (e *endpoint) hold(d *dispatch) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.removed {
		return false
	}
	e.users++
	d.prev = e.last
	if e.last == nil {
		e.first = d
	} else {
		e.last.next = d
	}
	e.last = d
	return true
}

// drop notes that d holds it no longer.
func (e *endpoint) drop(d *dispatch) {
	e.mu.Lock()
	if d.prev == nil {
		e.first = d.next
	} else {
		d.prev.next = d.next
	}
	if d.next == nil {
		e.last = d.prev
	} else {
		d.next.prev = d.prev
	}
	d.prev, d.next = nil, nil
	e.mu.Unlock()
	e.leave()
}

// enter notes a user that does not hold the peer, by one that does.
func (e *endpoint) enter() {
	e.mu.Lock()
	e.users++
	e.mu.Unlock()
}

// leave notes that a user is gone.
func (e *endpoint) leave() {
	e.mu.Lock()
	e.users--
	last := e.removed && e.users == 0
	e.mu.Unlock()
	if last {
		e.hangUp()
	}
}

// oldest returns when the peer was got by the request that has held it longest.
func (e *endpoint) oldest() (since time.Duration, held bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == nil {
		return 0, false
	}
	return e.first.since, true
}
