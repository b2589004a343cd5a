package peer

import (
	"encoding/json"
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
	// PeerIdle: the last request of a peer that is down, draining or removed has ended.
	PeerIdle
	// SetChanged: Update has exchanged the set.
	SetChanged
	// NoLivePeers: a request found no peer.
	NoLivePeers
	// NamesChanged: a name that was looked up again has other addresses; the
	// SetChanged that it caused was reported before. LookupFailed: there was no answer, or
	// not the whole of it, or no set could be made of it; what is missing because of
	// that stays as it was. Upstream.Note brings both, for nothing is looked up here.
	NamesChanged
	LookupFailed
)

var eventNames = [...]string{"failed", "ejected", "probed", "alive", "full", "idle", "set changed", "no live peers",
	"names changed", "look-up failed"}

// String returns the kind in lower-case words.
func (k EventKind) String() string { return nameOf(eventNames[:], uint8(k), "EventKind") }

// MarshalText spells the kind as String does.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Event is something that has happened to a peer, to the set, or to the names that
// it was made of.
type Event struct {
	Kind EventKind `json:"kind"`
	// Time is the clock's, in UTC.
	Time time.Time `json:"time"`
	// Peer is whom it concerns; empty where that is no peer.
	Peer Peer `json:"peer"`
	// Fails are the peer's failures, EffectiveBefore and EffectiveAfter its
	// effective weight around the event, Conns what it holds.
	Fails           int64 `json:"fails"`
	EffectiveBefore int64 `json:"ew_before"`
	EffectiveAfter  int64 `json:"ew_after"`
	Conns           int64 `json:"conns"`
	// Removed says of an idle peer that it was removed.
	Removed bool `json:"removed,omitempty"`
	// Decision says for NoLivePeers why each peer was not available.
	Decision *Decision `json:"decision,omitempty"`
	// Lookup says for NamesChanged and LookupFailed what the result was.
	Lookup *Lookup `json:"lookup,omitempty"`
	// Dropped is how many events before this one were lost because the hook was slower than they came.
	Dropped uint64 `json:"dropped,omitempty"`
}

// Lookup is what came of looking a name up again.
type Lookup struct {
	// Host is the name, Service that of the server line ("" for addresses).
	Host    string
	Service string
	// Added and Removed are the addresses that the name has more and less than
	// before (NamesChanged): "10.0.0.1" or "::1", for a service "10.0.0.1:80" or
	// "[::1]:80".
	Added   []string
	Removed []string
	// Err is why the look-up has failed (LookupFailed).
	Err error
}

// MarshalJSON spells the error as its text.
func (l Lookup) MarshalJSON() ([]byte, error) {
	text := ""
	if l.Err != nil {
		text = l.Err.Error()
	}
	return json.Marshal(struct {
		Host    string   `json:"host"`
		Service string   `json:"service,omitempty"`
		Added   []string `json:"added,omitempty"`
		Removed []string `json:"removed,omitempty"`
		Err     string   `json:"error,omitempty"`
	}{l.Host, l.Service, l.Added, l.Removed, text})
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
	if e.Lookup != nil {
		attrs = append(attrs, e.Lookup.attrs()...)
	}
	if e.Dropped > 0 {
		attrs = append(attrs, slog.Uint64("dropped", e.Dropped))
	}
	return slog.GroupValue(attrs...)
}

// attrs are its slog attributes, of what there is.
func (l *Lookup) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("host", l.Host)}
	if l.Service != "" {
		attrs = append(attrs, slog.String("service", l.Service))
	}
	if len(l.Added) > 0 {
		attrs = append(attrs, slog.Any("added", l.Added))
	}
	if len(l.Removed) > 0 {
		attrs = append(attrs, slog.Any("removed", l.Removed))
	}
	if l.Err != nil {
		attrs = append(attrs, slog.Any("error", l.Err))
	}
	return attrs
}
