package balancer

import (
	"iter"
	"slices"

	"github.com/trunklb/trunk/peer"
)

// roster is the endpoints of an upstream: those of its present peers, in the
// order of the set, and those of removed peers that are still held. It is
// guarded by Upstream.mu.
type roster struct {
	set     *peer.Set
	present []*endpoint
	removed []*endpoint
	// fresh are those that were made for the set that is coming.
	fresh []*endpoint
}

// all are the endpoints, those of the coming set too.
func (r *roster) all() iter.Seq[*endpoint] {
	return func(yield func(*endpoint) bool) {
		for _, list := range [][]*endpoint{r.present, r.removed, r.fresh} {
			for _, e := range list {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// follow brings the endpoints into the order of a set that peer has just made
// present. Which peer stayed is decided as peer does: of several with one
// address the first is the first.
func (r *roster) follow(set *peer.Set) {
	if set == r.set {
		r.fresh = nil // of a set that did not come: the clock has panicked
		return
	}
	known := make(map[string][]*endpoint, len(r.present))
	for _, e := range r.present {
		addr := e.server().Addr
		known[addr] = append(known[addr], e)
	}
	fresh := r.fresh
	r.set, r.fresh = set, nil
	r.present = make([]*endpoint, 0, set.Len(peer.Primary)+set.Len(peer.Backup))
	for _, group := range []int{peer.Primary, peer.Backup} {
		for i := range set.Len(group) {
			s := set.Server(group, i)
			var e *endpoint
			if old := known[s.Addr]; len(old) > 0 {
				e, known[s.Addr] = old[0], old[1:]
				e.configure(s)
			} else {
				e, fresh = fresh[0], fresh[1:]
			}
			r.present = append(r.present, e)
		}
	}
	for _, rest := range known {
		for _, e := range rest {
			if !e.isRemoved() {
				r.removed = append(r.removed, e)
			}
		}
	}
}

// drop takes out an endpoint whose peer is removed and idle.
func (r *roster) drop(e *endpoint) {
	r.removed = slices.DeleteFunc(r.removed, func(o *endpoint) bool { return o == e })
}

func (e *endpoint) isRemoved() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.removed
}

// attach makes what is kept of a peer that is new.
func (u *Upstream) attach(s Server) *endpoint {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := newEndpoint(s)
	e.removed = u.closed.Load() // Close, in the midst of a change, cannot have seen it
	for _, t := range u.bases {
		e.addRoute(t.newRoute(e))
	}
	u.ends.fresh = append(u.ends.fresh, e)
	return e
}

// follow takes over a new set of peers.
func (u *Upstream) follow() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ends.follow(u.peers.Set())
}

// idle is called for a peer that was removed, or is down or draining, when no request
// holds it any more. It runs in the goroutine of the request, or of the change, that made it so.
func (u *Upstream) idle(_ peer.Peer, attached any, removed bool) {
	if removed {
		e := attached.(*endpoint)
		e.remove()
		u.mu.Lock()
		u.ends.drop(e)
		u.mu.Unlock()
	}
	u.idles.wake()
}

// endpoints returns the endpoints of all peers, the removed ones too that are held.
func (u *Upstream) endpoints() []*endpoint {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(u.ends.all())
}
