package peer

import (
	"errors"
	"slices"
)

// TextKind is what a text is that a Redact function may replace.
type TextKind string

// The kinds of texts.
const (
	// TextKey: what a request's choice is hashed from.
	TextKey TextKind = "key"
	// TextClient: a client's address.
	TextClient TextKind = "client"
	// TextHint: the sid that a request brings, the sid of a peer, or its route. A sid
	// that is not a route is the MD5 of an address.
	TextHint TextKind = "hint"
	// TextAddr: an address, a name or a service of a peer, or what is looked up.
	TextAddr TextKind = "addr"
	// TextLabel: a server's zone, or the value of a label.
	TextLabel TextKind = "label"
	// TextError: why a look-up has failed, or how a hook has panicked. It may hold any
	// of the others.
	TextError TextKind = "error"
)

// redact replaces a text, if there is one.
func redact(f func(TextKind, string) string, kind TextKind, text *string) {
	if *text != "" {
		*text = f(kind, *text)
	}
}

func redactAll(f func(TextKind, string) string, kind TextKind, texts []string) []string {
	texts = slices.Clone(texts)
	for i := range texts {
		redact(f, kind, &texts[i])
	}
	return texts
}

// Redacted returns a copy in which f has replaced key, client, hint and the peers'
// addresses. What a method says of a peer (Detail) stays.
func (d *Decision) Redacted(f func(TextKind, string) string) *Decision {
	c := *d
	redact(f, TextKey, &c.Key)
	redact(f, TextClient, &c.Client)
	redact(f, TextHint, &c.Hint)
	c.Peers = slices.Clone(d.Peers)
	for i := range c.Peers {
		redact(f, TextAddr, &c.Peers[i].Addr)
		redact(f, TextAddr, &c.Peers[i].Name)
	}
	return &c
}

// Redacted returns a copy in which f has replaced every text of a TextKind.
func (e Event) Redacted(f func(TextKind, string) string) Event {
	e.Peer.redact(f)
	if e.Decision != nil {
		e.Decision = e.Decision.Redacted(f)
	}
	if l := e.Lookup; l != nil {
		c := Lookup{Host: l.Host, Service: l.Service, Added: redactAll(f, TextAddr, l.Added), Removed: redactAll(f, TextAddr, l.Removed)}
		redact(f, TextAddr, &c.Host)
		redact(f, TextAddr, &c.Service)
		if l.Err != nil {
			c.Err = errors.New(f(TextError, l.Err.Error()))
		}
		e.Lookup = &c
	}
	return e
}

// Redacted returns a copy in which f has replaced every text of a TextKind.
func (s Snapshot) Redacted(f func(TextKind, string) string) Snapshot {
	redact(f, TextError, &s.HookPanic)
	s.Peers = slices.Clone(s.Peers)
	for i := range s.Peers {
		s.Peers[i].Peer.redact(f)
	}
	return s
}

func (p *Peer) redact(f func(TextKind, string) string) {
	s := &p.Server
	redact(f, TextAddr, &s.Addr)
	redact(f, TextAddr, &s.Name)
	redact(f, TextAddr, &s.Service)
	redact(f, TextAddr, &s.TLSName)
	redact(f, TextAddr, &s.Host)
	redact(f, TextLabel, &s.Zone)
	redact(f, TextHint, &s.Route)
	labels := map[string]string{}
	for name, value := range s.Labels.All() {
		redact(f, TextLabel, &value)
		labels[name] = value
	}
	s.Labels = LabelsOf(labels)
	redact(f, TextHint, &p.SID)
}
