// Package sticky binds clients to peers: nginx's sticky cookie, sticky route
// and sticky learn (docs/parity.md, section 9).
//
// Every peer has a sid: its route, or else the MD5 of its address in lower-case
// hex. A client that brings the sid of a peer, its hint, gets that peer if it
// is available, even one that is draining; any other client gets what the method
// picks. The package has two halves that meet in the hint:
//
//   - Over puts the binding over any method. It knows nothing but the hint in
//     peer.Request.Hint, resolves it in each group that is asked, and picks
//     nothing itself.
//   - Cookie, Route and Learn say where the hint comes from. They are
//     configuration, values of the field Sticky of balancer.Config; New makes
//     them a Binding, which package balancer asks for the hint before each get and
//     for the Set-Cookie line, and informs of each answer.
//
// What clients send is not trusted. A hint that is too long, binary, unknown,
// forged, or hidden among thousands of cookies means the method's own pick, and
// nothing else.
package sticky

import (
	"strings"
	"time"

	"github.com/trunklb/trunk/internal/wallclock"
	"github.com/trunklb/trunk/peer"
)

// Sticky is the configuration of one of nginx's three ways to bind a client to
// a peer: Cookie, Route or Learn. It is an immutable value that goroutines may
// share.
type Sticky interface {
	// Describe returns what nginx calls it and what it does not fit.
	Describe() peer.Description
	// bind validates the configuration and puts it to work. The error is a
	// *peer.ConfigError.
	bind(*Options) (*Binding, error)
}

// Values gives the value of a text with nginx's variables in it, such as
// "$cookie_route" or ".$arg_d.example.com", for the request at hand; a variable
// that is not set is empty. A nil Values has no variables: every one is empty.
//
// A constant text, without a dollar sign, is never asked for.
type Values func(text string) string

// of returns the value of a text.
func (v Values) of(text string) string {
	switch {
	case !strings.Contains(text, "$"):
		return text
	case v == nil:
		return ""
	}
	return v(text)
}

// first returns the first value that is not empty.
func (v Values) first(texts []string) string {
	for _, text := range texts {
		if value := v.of(text); value != "" {
			return value
		}
	}
	return ""
}

// maxSID is the maximal length of a sid in bytes: routes have at most as many,
// and the hexadecimal MD5 of an address has just as many. What is longer cannot
// be the sid of a peer.
const maxSID = peer.MaxRoute

// Options are what a Binding takes from outside. The zero value, and a nil
// *Options, are the defaults.
type Options struct {
	// Clock returns the time since the Unix epoch: give the upstream's own.
	// nil: the wall time at construction plus the monotonic time since.
	Clock func() time.Duration
}

// clock returns the Clock, or its default.
func (o *Options) clock() func() time.Duration {
	if o != nil && o.Clock != nil {
		return o.Clock
	}
	return wallclock.New()
}

// refuse says which field of the configuration is wrong, and what would be right.
func refuse(field string, value any, reason string) error {
	return &peer.ConfigError{Server: -1, Field: "Sticky." + field, Value: value, Reason: reason}
}
