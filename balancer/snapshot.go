package balancer

import (
	"cmp"
	"time"

	"github.com/trunklb/trunk/internal/glue"
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
	s := u.peers.Internal(glue.Key{}).Snapshot(func(now time.Duration, p *peer.PeerSnapshot, attached any) {
		if since, held := attached.(*endpoint).oldest(); held {
			p.OldestHeld = max(now-since, time.Nanosecond)
		}
	})
	panics, first := u.hooks.Panics()
	s.HookPanics += panics
	s.HookPanic = cmp.Or(s.HookPanic, first)
	return s
}
