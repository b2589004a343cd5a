package peer

import (
	"log/slog"
	"time"
)

// EventKind is what has happened.
type EventKind uint8

// The kinds of events.
const (
	// PeerFailed: an attempt has failed. PeerEjected: it was one too many, and the peer
	// is out for its fail timeout.
	PeerFailed EventKind = iota
	PeerEjected
	// PeerProbed: a request was given to a peer that is out, to see. PeerAlive:
	// such a peer has answered, and is in again.
	PeerProbed
	PeerAlive
	// PeerFull: a peer has reached its max_conns.
	PeerFull
	// PeerIdle: nobody holds a peer any more that is down, draining or removed.
	PeerIdle
	// SetChanged: Update has exchanged the set.
	SetChanged
	// NoLivePeers: a request found no peer.
	NoLivePeers
)

var eventNames = [...]string{"failed", "ejected", "probed", "alive", "full", "idle", "set changed", "no live peers"}

// String returns the kind in lower-case words.
func (k EventKind) String() string { return nameOf(eventNames[:], uint8(k), "EventKind") }

// MarshalText spells the kind as String does.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Event is something that has happened to a peer or to the set.
type Event struct {
	Kind EventKind `json:"kind"`
	// Time is the clock's, since the Unix epoch.
	Time time.Duration `json:"time"`
	// Peer is whom it concerns; empty for SetChanged and NoLivePeers.
	Peer Peer `json:"peer"`
	// Fails are the peer's failures, EffectiveBefore and EffectiveAfter its
	// effective weight around the event, Conns what it holds.
	Fails           int64 `json:"fails"`
	EffectiveBefore int64 `json:"ew_before"`
	EffectiveAfter  int64 `json:"ew_after"`
	Conns           int64 `json:"conns"`
	// Removed says of an idle peer that it was removed.
	Removed bool `json:"removed,omitempty"`
	// Decision tells for NoLivePeers why each peer could not be had.
	Decision *Decision `json:"decision,omitempty"`
	// Dropped is how many events before this one were lost because the hook was slower than they came.
	Dropped uint64 `json:"dropped,omitempty"`
}

// LogValue makes an event a group of slog attributes under nginx's names.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("event", e.Kind.String())}
	if addr := e.Peer.Server.Addr; addr != "" {
		attrs = append(attrs, slog.String("peer", addr), slog.Int64("conns", e.Conns),
			slog.Int64("fails", e.Fails), slog.Int("max_fails", e.Peer.Server.MaxFails),
			slog.Int64("ew_before", e.EffectiveBefore), slog.Int64("ew_after", e.EffectiveAfter))
	}
	if e.Decision != nil {
		attrs = append(attrs, slog.String("decision", e.Decision.String()))
	}
	if e.Dropped > 0 {
		attrs = append(attrs, slog.Uint64("dropped", e.Dropped))
	}
	return slog.GroupValue(attrs...)
}
