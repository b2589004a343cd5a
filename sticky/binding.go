package sticky

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trunklb/trunk/peer"
)

// Binding is a Sticky at work for one upstream. It finds the hint of a request
// and sends the client, or remembers, the sid of its peer. Over does the rest.
//
// In the life of a request it is asked at these points, none of them under the
// upstream's lock:
//
//	for each attempt:
//	    Hint       before the get; its result is peer.Request.Hint
//	    SetCookie  after the get; the line that the answer is to carry
//	    Header     when the response header has come and is kept
//	last:
//	    OK         after the peer was freed with peer.OK
//
// The sid that they take is that of the peer which the request got (peer.Peer.SID).
// Goroutines may share a Binding. The zero value binds nothing.
type Binding struct {
	clock  func() time.Duration
	cookie *cookie
	route  *Route
	learn  *learn
}

// New puts a Sticky to work, of which it keeps a copy. The error is a *peer.ConfigError that
// names the field and its value. A nil Sticky gives a Binding that binds nothing.
func New(s Sticky, o *Options) (*Binding, error) {
	if s == nil {
		return &Binding{}, nil
	}
	if isNil(s) {
		return nil, &peer.ConfigError{Server: -1, Field: "Sticky", Value: fmt.Sprintf("%T", s), Reason: "is a nil pointer"}
	}
	return s.bind(o)
}

// CookieName returns Cookie.Name; "" for Route and Learn.
func (b *Binding) CookieName() string {
	if b.cookie == nil {
		return ""
	}
	return b.cookie.Name
}

// Learns reports whether what has been learned since may change the hint of a request.
func (b *Binding) Learns() bool { return b.learn != nil }

// Texts returns the texts with variables in them that the Binding will ask a
// Values for, so that they can be checked and prepared beforehand. The first one of a
// Cookie is "$cookie_" and its name, whatever characters that has. Route.Func
// may ask for others.
func (b *Binding) Texts() []string {
	var all []string
	switch {
	case b.cookie != nil:
		all = []string{b.cookie.variable(), b.cookie.Domain, b.cookie.SameSite}
	case b.route != nil:
		all = b.route.Variables
	case b.learn != nil:
		all = slices.Concat(b.learn.create, b.learn.lookup)
	}
	var texts []string
	for _, text := range all {
		if strings.Contains(text, "$") {
			texts = append(texts, text)
		}
	}
	return texts
}

// Hint returns the sid that the request asks for: the one in its cookie, its
// route, or that of its learned session. Empty: it asks for none, or for one
// that cannot be a sid. It is asked before every get, since what has been learned
// may have changed since the last.
//
// An error comes from the Table alone. There is no hint then, and the get goes
// on without: the error is there to be reported.
func (b *Binding) Hint(ctx context.Context, v Values) (string, error) {
	var sid string
	var err error
	switch {
	case b.cookie != nil:
		sid = b.cookie.read(v.of(b.cookie.variable()))
	case b.route != nil:
		sid = b.route.sid(v)
	case b.learn != nil:
		sid, err = b.learn.hint(ctx, v)
	}
	if err != nil || len(sid) > maxSID {
		return "", err
	}
	return sid, nil
}

// SetCookie returns the value of the Set-Cookie line that binds the client to
// the peer with that sid. It expires as counted from now. Empty: route and learn
// have none. nginx sets it on every answer, in place of that of the attempt before.
func (b *Binding) SetCookie(sid string, v Values) string {
	if b.cookie == nil {
		return ""
	}
	return b.cookie.text(sid, v, b.clock())
}

// Header reports that the response header has come from the peer with that sid, and
// will be delivered, not retried. v sees the response too
// ($upstream_cookie_x). With Learn.Header it is what the session is learned
// from. An error comes from the Table alone.
func (b *Binding) Header(ctx context.Context, sid string, v Values) error {
	if b.learn == nil || !b.learn.atHeader {
		return nil
	}
	return b.learn.learn(ctx, sid, v)
}

// OK reports that the peer with that sid was freed with peer.OK. v sees the response
// too, unless no header has come. Without Learn.Header it is what the session
// is learned from. An error comes from the Table alone.
func (b *Binding) OK(ctx context.Context, sid string, v Values) error {
	if b.learn == nil || b.learn.atHeader {
		return nil
	}
	return b.learn.learn(ctx, sid, v)
}
