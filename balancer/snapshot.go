package balancer

import (
	"cmp"
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
	now := time.Duration(s.Time.UnixNano())
	for i := range s.Peers {
		end, ok := s.Peers[i].Attached.(*endpoint)
		if !ok {
			continue
		}
		if since, held := end.oldest(); held {
			s.Peers[i].OldestHeld = max(now-since, time.Nanosecond)
		}
	}
	return s
}
