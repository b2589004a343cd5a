package balancer

import (
	"cmp"
	"context"
	"time"

	"github.com/trunklb/trunk/peer"
)

// Decision is the record of one choice: who was looked at, who was passed over
// and why, and which rule chose. Its String is what one pastes into a ticket.
type Decision = peer.Decision

// Event is something that has happened to a peer, to the set, or to the names that
// it was made of; it is a slog.LogValuer.
type Event = peer.Event

// Lookup is what came of looking a name up again; Event.Lookup tells it.
type Lookup = peer.Lookup

// Snapshot is the whole state of an upstream at one moment. It marshals to
// JSON with stable names, so that
//
//	expvar.Publish("backend", expvar.Func(func() any { return up.Snapshot() }))
//
// shows it; with up.Snapshot().Redacted(f), without names and addresses.
type Snapshot = peer.Snapshot

// Explain says of which requests Decisions are wanted. The zero value: none, at no
// cost.
type Explain struct {
	// OnDecision is told each Decision, outside the upstream's lock, by the
	// request's own goroutine, after the choice and before the peer is asked.
	// The Decision is its own to keep. A panic of it harms nobody; it is counted
	// (Snapshot.HookPanics). See also Config.Redact. nil: only WithDecisions counts.
	OnDecision func(*Decision)
	// Share is the part of all choices that is explained, from 0 to 1.
	Share float64
	// Retries explains all second and later choices of a request.
	Retries bool
	// NoLivePeers explains the choices that find no peer.
	NoLivePeers bool
}

func (e *Explain) check() error {
	switch {
	case !(e.Share >= 0 && e.Share <= 1):
		return &ConfigError{Server: -1, Field: "Explain.Share", Value: e.Share, Reason: "must be from 0 to 1"}
	case e.OnDecision == nil && (e.Share > 0 || e.Retries || e.NoLivePeers):
		return &ConfigError{Server: -1, Field: "Explain.OnDecision", Value: "nil", Reason: "somebody must be told"}
	}
	return nil
}

// wants reports whether the next choice of a request is to be explained, as far as can be
// said before it.
func (e *Explain) wants(again bool, u *Upstream) bool {
	if e.OnDecision == nil {
		return false
	}
	// A share is counted, not drawn: the upstream's source is for the choice.
	every := uint64(1 << 32 * e.Share)
	return again && e.Retries || every > 0 && u.explained.Add(every)%(1<<32) < every
}

// WithDecisions returns a context whose requests tell f how each of their peers was
// chosen. f is called like Explain.OnDecision, but nothing is redacted, and a panic
// of f is the request's own, which keeps no peer.
func WithDecisions(ctx context.Context, f func(*Decision)) context.Context {
	return with(ctx, func(c *carry) { c.decisions = f })
}

// pick asks for a peer, and tells who wants to know how it was chosen.
func (d *dispatch) pick() error {
	u := d.up
	e := &u.explain
	told := e.wants(d.asked, u)
	if !told && !e.NoLivePeers && d.decisions == nil {
		return u.peers.Get(&d.req)
	}
	decision := &Decision{}
	err := u.peers.Explain(&d.req, decision)
	if d.decisions != nil {
		d.decisions(decision)
	}
	if told || e.NoLivePeers && err != nil {
		u.tell(decision)
	}
	return err
}

// tell calls OnDecision.
func (u *Upstream) tell(d *Decision) {
	defer u.hooks.Recover()
	if u.redact != nil {
		d = d.Redacted(u.redact)
	}
	u.explain.OnDecision(d)
}

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
