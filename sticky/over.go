package sticky

import (
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

// bound is a method with a binding over it. Its Description is the method's own: the
// binding is a line of its own in an upstream block.
type bound struct{ peer.Method }

// String returns the method's name.
func (m bound) String() string { return peer.Describe(m).Name }

// Build implements peer.Method. The error is the method's.
func (m bound) Build(set *peer.Set) (peer.Selector, error) {
	s, err := m.Method.Build(set)
	b := &selector{s.Bind, [2]map[string]int{bySID(set, peer.Primary), bySID(set, peer.Backup)}}
	s.Bind = b.bind
	return s, err
}

// bySID maps each sid to the first peer that has it.
func bySID(set *peer.Set, group int) map[string]int {
	first := make(map[string]int, set.Len(group))
	for i := set.Len(group) - 1; i >= 0; i-- {
		first[set.SID(group, i)] = i
	}
	return first
}

// selector binds, and leaves the rest to the one that it is over.
type selector struct {
	inner func(*peer.Group, *peer.Request, peer.Now) int // its Bind, or nil
	first [2]map[string]int
}

// bind is the selector's Bind. A request with a hint that means no peer is left to
// the method, which may bind by another rule.
func (s *selector) bind(g *peer.Group, r *peer.Request, now peer.Now) int {
	// Hashing a hint takes time in proportion to its length, and this is
	// under the upstream's lock.
	if n := len(r.Hint); n > 0 && n <= maxSID {
		if i, ok := s.first[g.Index()][r.Hint]; ok && g.EligibleDraining(i, r, now) {
			return i
		}
	}
	if s.inner != nil {
		return s.inner(g, r, now)
	}
	return peer.None
}
