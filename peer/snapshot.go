package peer

import "time"

// Snapshot is the state of an upstream at one moment. It adds up: of its counters
//
//	Requests + Retries = Total.Gets + NoLivePeers
//
// and of the peers' and of the Total
//
//	Gets = OK + Failed + Next + Abandoned + what is held (Conns)
type Snapshot struct {
	// Time is the clock's, in UTC.
	Time time.Time `json:"time"`
	// Method is the method in nginx's words.
	Method string `json:"method"`
	// Version counts the sets, from 1.
	Version int `json:"version"`
	// Requests counts the requests that have asked for a peer; Retries how often they
	// asked again; NoLivePeers how often there was none.
	Requests    uint64 `json:"requests"`
	Retries     uint64 `json:"retries"`
	NoLivePeers uint64 `json:"no_live_peers"`
	// Total is what all peers have counted, also those that were removed and are
	// gone: unlike the sum over Peers it never falls.
	Total Counts `json:"total"`
	// EventsDropped counts the events that were lost because OnEvent was slower than
	// they came, HookPanics how often a hook has panicked. HookPanic is the value of
	// the first such panic, and the stack.
	EventsDropped uint64 `json:"events_dropped"`
	HookPanics    uint64 `json:"hook_panics"`
	HookPanic     string `json:"hook_panic,omitempty"`
	// Peers are the primary peers, the backups, and those that were removed
	// while requests held them.
	Peers []PeerSnapshot `json:"peers"`
}

// PeerSnapshot is one peer in a Snapshot.
type PeerSnapshot struct {
	Peer
	State
	// OldestHeld is for how long the peer has been held by the request that has
	// held it longest; 0: by none, or not known, for package balancer keeps that
	// account. A response body that was never closed shows here.
	OldestHeld time.Duration `json:"oldest_held,omitempty"`
	// Removed: the set does not have it any more.
	Removed bool `json:"removed,omitempty"`
	// Out: it has failed as often as it may. It is asked again from OutUntil on,
	// in UTC; the year 2262 means never.
	Out      bool      `json:"out,omitempty"`
	OutUntil time.Time `json:"out_until,omitzero"`
	// Counts are the peer's since it was added. A changed set leaves them to those that
	// stay; a peer that is added again starts from zero.
	Counts
}

// Counts is how often peers were taken, and how they were freed.
type Counts struct {
	Gets      uint64 `json:"gets"`
	OK        uint64 `json:"ok"`
	Failed    uint64 `json:"failed"`
	Next      uint64 `json:"next"`
	Abandoned uint64 `json:"abandoned"`
}

func (c *Counts) add(d Counts) {
	c.Gets += d.Gets
	c.OK += d.OK
	c.Failed += d.Failed
	c.Next += d.Next
	c.Abandoned += d.Abandoned
}

// Snapshot returns the whole state, consistent in itself: it holds the lock
// while it copies.
func (u *Upstream) Snapshot() Snapshot { return u.snapshot(func(time.Duration, *PeerSnapshot, any) {}) }

// snapshot completes each peer by what is attached to it.
func (u *Upstream) snapshot(complete func(time.Duration, *PeerSnapshot, any)) Snapshot {
	for {
		// What does not change, and the memory, is made before the lock is taken.
		set := u.set.Load()
		s := Snapshot{Method: u.name, Version: set.version, Peers: set.snapshots()}
		if u.fill(&s, set, complete) {
			return s
		}
	}
}

// fill writes the state into a snapshot of a set. It reports false if the set is another
// one by now.
func (u *Upstream) fill(s *Snapshot, set *Set, complete func(time.Duration, *PeerSnapshot, any)) bool {
	now := u.lock()
	defer u.mu.Unlock()
	if u.set.Load() != set {
		return false
	}
	s.Time, s.Retries, s.NoLivePeers, s.Total = wallTime(now.Time), u.retries, u.noLivePeers, u.past
	if j := u.journal; j != nil {
		s.EventsDropped = j.lost
		s.HookPanics, s.HookPanic = j.panics.Panics()
	}
	n := 0
	for gi := range u.groups {
		g := &u.groups[gi]
		for i := range g.peers {
			// The word is read once: a free without the lock may come in between.
			w := g.peers[i].load.Load()
			counts := g.counts(i, w)
			s.Total.add(counts)
			if gi == removed {
				if g.peers[i].conns(w) == 0 {
					continue // gone
				}
				s.Peers = append(s.Peers, PeerSnapshot{Peer: g.peer(i), Removed: true})
			}
			p := &s.Peers[n]
			n++
			p.State, p.Counts, p.Out = g.stateOf(i, w), counts, w&out != 0
			if p.Out {
				p.OutUntil = wallTime(g.probe(i))
			}
			complete(now.Time, p, g.cold[i].attached)
		}
	}
	// Not counted, but known: every get is a request's first or a retry.
	s.Requests = s.Total.Gets + s.NoLivePeers - s.Retries
	return true
}

// snapshots are the peers of a set without their state, with room for some that were
// removed.
func (s *Set) snapshots() []PeerSnapshot {
	list := make([]PeerSnapshot, 0, s.number+s.number/8+8)
	for gi := range s.groups {
		for i := range s.groups[gi] {
			list = append(list, PeerSnapshot{Peer: s.groups[gi][i].peer(gi, i)})
		}
	}
	return list
}

// counts are those of peer i when its word is w.
func (g *Group) counts(i int, w uint64) Counts {
	p, n := &g.peers[i], &g.cold[i].counts
	c := Counts{Gets: p.gets, Failed: n[Failed], Next: n[Next], Abandoned: n[Abandoned]}
	// An OK free takes no lock and counts nothing: what is neither held nor
	// freed otherwise was freed so.
	c.OK = c.Gets - c.Failed - c.Next - c.Abandoned - uint64(p.conns(w))
	return c
}
