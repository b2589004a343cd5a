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
	// forgotten: unlike the sum over Peers it never falls.
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
	// in UTC; the year 2262 stands for never.
	Out      bool      `json:"out,omitempty"`
	OutUntil time.Time `json:"out_until,omitzero"`
	// Counts are the peer's since it was added. A changed set leaves them to those that
	// stay; a peer that is added again begins anew.
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
	now := u.lock()
	defer u.mu.Unlock()
	s := Snapshot{Time: wallTime(now.Time), Method: u.name, Version: u.set.Load().version,
		Retries: u.retries, NoLivePeers: u.noLivePeers, Total: u.forgotten}
	if j := u.journal; j != nil {
		s.EventsDropped = j.lost
		s.HookPanics, s.HookPanic = j.panics.Panics()
	}
	for gi := range u.groups {
		g := &u.groups[gi]
		for i := range g.peers {
			p := g.snapshot(i)
			s.Total.add(p.Counts)
			if gi == leaving && p.Conns == 0 {
				continue // forgotten
			}
			complete(now.Time, &p, g.cold[i].attached)
			s.Peers = append(s.Peers, p)
		}
	}
	// Not counted, but known: every get is a request's first or a retry.
	s.Requests = s.Total.Gets + s.NoLivePeers - s.Retries
	return s
}

func (g *Group) snapshot(i int) PeerSnapshot {
	// The word is read once: a free without the lock may come in between.
	w := g.peers[i].load.Load()
	s := PeerSnapshot{Peer: g.peer(i), State: g.stateOf(i, w), Removed: g.index == leaving, Out: w&out != 0,
		Counts: g.counts(i, w)}
	if s.Out {
		s.OutUntil = wallTime(g.probe(i))
	}
	return s
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
