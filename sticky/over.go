package sticky

import (
	"fmt"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/roundrobin"
)

// Over returns the method with a binding over it: a request whose Hint is the sid
// of a peer gets that peer, if it may have it; any other request, and that one
// where it may not, gets what the method picks (docs/parity.md, section 9).
//
// Of several peers with one sid only the first in list order counts, in the
// group that the request is in. Draining does not keep a bound request away;
// being down, in its fail window, full, or tried already by this request does.
// Round robin charges the peer for being chosen; the other methods change no
// weight.
//
// A nil method is round robin.
func Over(m peer.Method) peer.Method {
	if m == nil {
		m = roundrobin.New()
	}
	return bound{m}
}

// bound is a method with a binding over it. KeyText is the method's own.
type bound struct{ peer.Method }

// String is the method's own too: the binding is a line of its own.
func (m bound) String() string { return fmt.Sprint(m.Method) }

// Build implements peer.Method. The error is the method's.
func (m bound) Build(set *peer.Set) (peer.Selector, error) {
	inner, err := m.Method.Build(set)
	if err != nil || inner == nil { // package peer refuses nil
		return nil, err
	}
	s := &selector{Selector: inner, first: [2]map[string]int{bySID(set, peer.Primary), bySID(set, peer.Backup)}}
	s.inner, _ = inner.(peer.Binder)
	// A type with the events of peer.Events is told of every peer that is
	// taken and freed. So only a selector over one that listens has them.
	if events, ok := inner.(peer.Events); ok {
		return &listener{s, events}, nil
	}
	return s, nil
}

// bySID maps each sid to the first peer that has it.
func bySID(set *peer.Set, group int) map[string]int {
	first := make(map[string]int, set.Len(group))
	for i := set.Len(group) - 1; i >= 0; i-- {
		first[set.SID(group, i)] = i
	}
	return first
}

// selector picks as the one that it is over, and binds.
type selector struct {
	peer.Selector
	inner peer.Binder // the same one, if it binds too
	first [2]map[string]int
}

// listener is a selector over one with events.
type listener struct {
	*selector
	peer.Events
}

// Bind implements peer.Binder. A request with a hint that means no peer is left to
// the method, which may bind by another rule.
func (s *selector) Bind(g *peer.Group, r *peer.Request, now peer.Now) int {
	// Hashing a hint takes time in proportion to its length, and this is
	// under the upstream's lock.
	if n := len(r.Hint); n > 0 && n <= mostSID {
		if i, ok := s.first[g.Index()][r.Hint]; ok && g.EligibleDraining(i, r, now) {
			return i
		}
	}
	if s.inner != nil {
		return s.inner.Bind(g, r, now)
	}
	return peer.None
}

// ComparesConns implements peer.Comparer for the selector that it is over.
func (s *selector) ComparesConns() bool {
	inner, ok := s.Selector.(peer.Comparer)
	return ok && inner.ComparesConns()
}

// Explain implements peer.Explainer for the selector that it is over.
func (s *selector) Explain(g *peer.Group, r *peer.Request, i int, now peer.Now) string {
	if inner, ok := s.Selector.(peer.Explainer); ok {
		return inner.Explain(g, r, i, now)
	}
	return ""
}
