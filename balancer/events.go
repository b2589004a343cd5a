package balancer

import "github.com/trunklb/trunk/peer"

// redacting returns the hook as peer is given it: what it is told is redacted.
func redacting(hook func(peer.Event), redact func(what, text string) string) func(peer.Event) {
	if hook == nil || redact == nil {
		return hook
	}
	return func(e peer.Event) { hook(redacted(e, redact)) }
}

// redacted is an event with its addresses and what its Decision says replaced.
func redacted(e peer.Event, f func(what, text string) string) peer.Event {
	if s := &e.Peer.Server; s.Addr != "" {
		s.Addr, s.Name, e.Peer.SID = f("addr", s.Addr), f("addr", s.Name), f("hint", e.Peer.SID)
	}
	if e.Decision != nil {
		e.Decision = e.Decision.Redacted(f)
	}
	return e
}
