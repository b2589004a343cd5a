package peer

import (
	"errors"
	"fmt"
	"strings"
)

// Outcome says how an attempt on a peer ended.
type Outcome uint8

// The outcomes (docs/parity.md, section 6).
const (
	// OK: the peer answered.
	OK Outcome = iota
	// Failed: the peer did not. It is counted, and weakens the peer.
	Failed
	// Next: the peer answered, but with a 403 or 404 that sends the request on.
	// No failure.
	Next
	// Abandoned: the caller went away before the response header, so that
	// nothing is known about the peer. Not nginx's; see docs/parity.md.
	Abandoned
)

var outcomeNames = [...]string{"OK", "FAILED", "NEXT", "ABANDONED"}

// String returns the outcome in the spelling of nginx.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// MarshalText spells the outcome in lower case: "ok", "failed", "next", "abandoned".
func (o Outcome) MarshalText() ([]byte, error) { return []byte(strings.ToLower(o.String())), nil }

// ErrNoLivePeers is returned by Get when no peer is available, in neither group:
// nginx's "no live upstreams". No peer has changed.
var ErrNoLivePeers = errors.New("trunk: no live peers")

// Errors of a wrong order of calls. Nothing has changed where one is returned.
var (
	// ErrNotBegun: the request was not begun on this upstream.
	ErrNotBegun = errors.New("trunk: the request was not begun on this upstream")
	// ErrHeld: the request already holds a peer, which must be freed first.
	ErrHeld = errors.New("trunk: the request already holds a peer")
	// ErrNotHeld: the request holds no peer: it has been freed, or never got one.
	ErrNotHeld = errors.New("trunk: the request holds no peer")
	// ErrOutcome: the outcome is none of OK, Failed, Next and Abandoned.
	ErrOutcome = errors.New("trunk: unknown outcome")
)
