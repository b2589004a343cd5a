package balancer

import (
	"cmp"
	"slices"
	"time"

	"github.com/trunklb/trunk/peer"
)

// Snapshot is the whole state of an upstream at one moment. It marshals to
// JSON with stable names, so that
//
//	expvar.Publish("backend", expvar.Func(func() any { return up.Snapshot() }))
//
// shows it; with up.Snapshot().Redacted(f), without names and addresses.
type Snapshot = peer.Snapshot

// Snapshot returns the whole state, consistent in itself: configuration, weights,
// connections, failures, averages and counters of every peer, also of those that
// were removed while requests held them. A zero Snapshot for a nil Upstream.
func (u *Upstream) Snapshot() Snapshot {
	if u == nil {
		return Snapshot{}
	}
	s := u.peers.Snapshot()
	panics, first := u.hooks.Panics()
	s.HookPanics += panics
	s.HookPanic = cmp.Or(s.HookPanic, first)
	for i := range s.Peers {
		end, ok := s.Peers[i].Attached.(*endpoint)
		if !ok {
			continue
		}
		if since, held := end.oldest(); held {
			s.Peers[i].OldestHeld = max(s.Time-since, time.Nanosecond)
		}
	}
	return s
}

// State returns the peers with their state: the primary group, then the backups,
// each in list order, then those that were removed while requests held them. nil
// for a nil Upstream.
func (u *Upstream) State() []PeerState {
	if u == nil {
		return nil
	}
	// So that set and endpoints are those of one moment.
	u.changing.Lock()
	defer u.changing.Unlock()
	peers := u.peers.Snapshot().Peers
	u.mu.Lock()
	present, leaving := u.ends.present, slices.Clone(u.ends.leaving)
	u.mu.Unlock()
	var out []PeerState
	for i, p := range peers {
		s := PeerState{Peer: p.Peer, State: p.State, Removed: p.Removed}
		var e *endpoint
		if !p.Removed {
			e = present[i]
		} else if n := slices.IndexFunc(leaving, func(e *endpoint) bool { return e.server().Addr == p.Server.Addr }); n >= 0 {
			e = leaving[n]
			leaving = slices.Delete(leaving, n, n+1)
		}
		if e != nil {
			if since, held := e.oldest(); held {
				s.OldestHeld = max(u.clock()-since, 1)
			}
		}
		out = append(out, s)
	}
	return out
}

// PeerState is a peer and its state at one moment.
type PeerState struct {
	peer.Peer
	peer.State
	// Removed: the set does not have the peer any more, but requests still
	// hold it. Group and Index mean nothing then.
	Removed bool
	// OldestHeld is for how long the peer has been held by the request that
	// has held it longest; 0: by none. A response body that was never closed
	// shows here.
	OldestHeld time.Duration
}
