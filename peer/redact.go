package peer

import (
	"errors"
	"slices"
)

// redact replaces a text, if there is one.
func redact(f func(what, text string) string, what string, text *string) {
	if *text != "" {
		*text = f(what, *text)
	}
}

func redactAll(f func(what, text string) string, what string, texts []string) []string {
	texts = slices.Clone(texts)
	for i := range texts {
		redact(f, what, &texts[i])
	}
	return texts
}

// Redacted returns a copy in which f has replaced what is said of "key", "client",
// "hint" and "addr" (addresses and names). What a method says of a peer (Detail) stays.
func (d *Decision) Redacted(f func(what, text string) string) *Decision {
	c := *d
	redact(f, "key", &c.Key)
	redact(f, "client", &c.Client)
	redact(f, "hint", &c.Hint)
	c.Peers = slices.Clone(d.Peers)
	for i := range c.Peers {
		redact(f, "addr", &c.Peers[i].Addr)
		redact(f, "addr", &c.Peers[i].Name)
	}
	return &c
}

// Redacted returns the event with what f has made of its "addr" (addresses, names
// and services, looked up ones too), "hint" (sid and route), "label" (zone and values of
// labels), "error" (of a look-up) and, in a Decision, "key" and "client".
func (e Event) Redacted(f func(what, text string) string) Event {
	e.Peer.redact(f)
	if e.Decision != nil {
		e.Decision = e.Decision.Redacted(f)
	}
	if l := e.Lookup; l != nil {
		c := Lookup{Host: l.Host, Service: l.Service, Added: redactAll(f, "addr", l.Added), Removed: redactAll(f, "addr", l.Removed)}
		redact(f, "addr", &c.Host)
		redact(f, "addr", &c.Service)
		if l.Err != nil {
			c.Err = errors.New(f("error", l.Err.Error()))
		}
		e.Lookup = &c
	}
	return e
}

// Redacted returns a copy with what f has made of "addr" (addresses, names and
// services), "hint" (sids and routes), "label" (zones and values of labels) and "error" (HookPanic). What is attached to
// the peers stays; it is not in the JSON.
func (s Snapshot) Redacted(f func(what, text string) string) Snapshot {
	redact(f, "error", &s.HookPanic)
	s.Peers = slices.Clone(s.Peers)
	for i := range s.Peers {
		s.Peers[i].Peer.redact(f)
	}
	return s
}

func (p *Peer) redact(f func(what, text string) string) {
	s := &p.Server
	redact(f, "addr", &s.Addr)
	redact(f, "addr", &s.Name)
	redact(f, "addr", &s.Service)
	redact(f, "addr", &s.TLSName)
	redact(f, "addr", &s.Host)
	redact(f, "label", &s.Zone)
	redact(f, "hint", &s.Route)
	labels := map[string]string{}
	for name, value := range s.Labels.All() {
		redact(f, "label", &value)
		labels[name] = value
	}
	s.Labels = LabelsOf(labels)
	redact(f, "hint", &p.SID)
}
