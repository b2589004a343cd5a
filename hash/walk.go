package hash

import (
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/peer"
)

// walk is consistent with FullWalk.
type walk struct {
	*consistent
	// alive says which servers have an available peer. It is rewritten by
	// each Pick that needs it, and kept only to save the memory: Picks come one
	// at a time.
	alive []bool
	// guesses is how many points are tried before all servers are looked at, which
	// costs about as much. Mostly the first one is good; but where many are
	// dead, servers would be tested again and again.
	guesses int
}

func newWalk(s *consistent) *walk {
	servers := len(s.ring.names)
	return &walk{consistent: s, alive: make([]bool, servers), guesses: 4 + servers/8}
}

// pick goes along the ring from the key's point, or from where the request
// was, to the first server with an available peer, even if that takes a whole turn.
// Where the group has none it is round robin that goes to the backup group.
func (s *walk) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if i, ok := pick.Preset(r, g.Single() || r.Key == ""); ok {
		return i
	}
	if !m.Begun {
		m.Begun, m.Hash = true, checksum(0, r.Key)
	}
	at := s.ring.find(m.Hash)
	for range s.guesses {
		p := s.ring.points[at]
		if i := s.among(g, r, p.server, now); i >= 0 {
			m.Hash = p.hash
			return i
		}
		at = s.ring.next(at)
	}
	if s.look(g, r, now) {
		for range s.ring.points {
			if p := s.ring.points[at]; s.alive[p.server] {
				m.Hash = p.hash
				return s.among(g, r, p.server, now)
			}
			at = s.ring.next(at)
		}
	}
	// Also where the only available ones have no points, since all theirs
	// were equal to another server's.
	return peer.RoundRobin
}

// look notes which servers have an available peer, and reports whether
// there is one.
func (s *walk) look(g *peer.Group, r *peer.Request, now peer.Now) bool {
	found := false
	for server, peers := range s.peers[g.Index()] {
		s.alive[server] = false
		for _, i := range peers {
			if g.Eligible(int(i), r, now) {
				s.alive[server], found = true, true
				break
			}
		}
	}
	return found
}
