package peer

import "time"

// Snapshot is the state of an upstream at one moment.
type Snapshot struct {
	// Time is the clock's, since the Unix epoch.
	Time time.Duration `json:"time"`
	// Method is the method in nginx's words.
	Method string `json:"method"`
	// Version counts the sets, from 1.
	Version int `json:"version"`
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
	// Attached is what Options.Attach has made for the peer.
	Attached any `json:"-"`
	// OldestHeld is for how long the peer has been held by the request that has
	// held it longest; 0: by none, or not known, for package balancer keeps that
	// account. A response body that was never closed shows here.
	OldestHeld time.Duration `json:"oldest_held,omitempty"`
	// Removed: the set does not have it any more.
	Removed bool `json:"removed,omitempty"`
	// Out: it has failed as often as it may. It is asked again from OutUntil on,
	// since the Unix epoch.
	Out      bool          `json:"out,omitempty"`
	OutUntil time.Duration `json:"out_until,omitempty"`
	// Gets counts how often the peer was taken since it was added; OK, Failed, Next and
	// Abandoned how it was freed.
	Gets      uint64 `json:"gets"`
	OK        uint64 `json:"ok"`
	Failed    uint64 `json:"failed"`
	Next      uint64 `json:"next"`
	Abandoned uint64 `json:"abandoned"`
}

// Snapshot returns the whole state, consistent in itself: it holds the lock
// while it copies.
func (u *Upstream) Snapshot() Snapshot {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	s := Snapshot{Time: now.Time, Method: u.name, Version: u.set.Load().version}
	if j := u.journal; j != nil {
		s.EventsDropped = j.lost
		s.HookPanics, s.HookPanic = j.panics.Panics()
	}
	for gi := range u.groups {
		g := &u.groups[gi]
		for i := range g.peers {
			if gi == leaving && g.Conns(i) == 0 {
				continue // forgotten
			}
			s.Peers = append(s.Peers, g.snapshot(i))
		}
	}
	return s
}

func (g *Group) snapshot(i int) PeerSnapshot {
	p, c := &g.peers[i], &g.cold[i]
	w := p.load.Load()
	// The word is read once: a free without the lock may come in between.
	s := PeerSnapshot{Peer: g.peer(i), State: g.stateOf(i, w), Attached: c.attached, Removed: g.index == leaving, Out: w&out != 0, Gets: p.gets,
		Failed: c.counts[Failed], Next: c.counts[Next], Abandoned: c.counts[Abandoned]}
	// An OK free takes no lock and counts nothing: what is neither held nor
	// freed otherwise was freed so.
	s.OK = s.Gets - s.Failed - s.Next - s.Abandoned - uint64(p.conns(w))
	if s.Out {
		s.OutUntil = g.probe(i)
	}
	return s
}
