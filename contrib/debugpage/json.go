package debugpage

import (
	"encoding/json"
	"io"
	"time"

	"github.com/trunklb/trunk/peer"
)

// report is the page as JSON. Snapshots, decisions and events have the names
// that package peer gives them.
type report struct {
	Upstreams []upstreamReport `json:"upstreams"`
}

type upstreamReport struct {
	Name          string           `json:"name"`
	Snapshot      *peer.Snapshot   `json:"snapshot,omitempty"` // absent: not watched
	DecisionsSeen uint64           `json:"decisions_seen"`
	Decisions     []decisionReport `json:"decisions"` // the newest first
	EventsDropped uint64           `json:"events_dropped"`
	Events        []eventReport    `json:"events"` // the newest first
}

type decisionReport struct {
	Seq uint64 `json:"seq"`
	peer.Decision
	LeftOut int `json:"peers_left_out,omitempty"`
}

type eventReport struct {
	peer.Event
	Times uint64 `json:"times"`
}

func (p *Page) writeJSON(w io.Writer, ask question) error {
	r := report{Upstreams: []upstreamReport{}}
	for _, panel := range p.all(ask.upstream) {
		r.Upstreams = append(r.Upstreams, p.opt.report(panel.kept()))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (o *Options) report(k kept) upstreamReport {
	r := upstreamReport{Name: clip(k.name), DecisionsSeen: k.seen, EventsDropped: k.dropped,
		Decisions: []decisionReport{}, Events: []eventReport{}}
	if k.watched {
		for i := range k.snapshot.Peers {
			s := &k.snapshot.Peers[i]
			s.OutUntil = bounded(s.OutUntil)
			o.redact(&s.Peer)
		}
		k.snapshot.Time = bounded(k.snapshot.Time)
		k.snapshot.HookPanic = o.redacted(Error, k.snapshot.HookPanic)
		r.Snapshot = &k.snapshot
	}
	for i := len(k.picks) - 1; i >= 0 && len(r.Decisions) < o.Decisions; i-- {
		r.Decisions = append(r.Decisions, o.decision(&k.picks[i]))
	}
	for i := len(k.events) - 1; i >= 0; i-- {
		h := &k.events[i]
		e := eventReport{Event: h.Event, Times: h.times}
		e.Time = bounded(e.Time)
		o.redact(&e.Peer)
		e.Lookup = o.lookup(h.Lookup)
		if h.reason {
			d := o.decision(&h.pick).Decision
			e.Decision = &d
		}
		r.Events = append(r.Events, e)
	}
	return r
}

// decision returns what may be shown of one.
func (o *Options) decision(k *pick) decisionReport {
	d := k.copied()
	d.Time = bounded(d.Time)
	d.Key, d.Client, d.Hint = o.redacted(Key, d.Key), o.redacted(Client, d.Client), o.redacted(Hint, d.Hint)
	for n := range d.Peers {
		c := &d.Peers[n]
		c.Addr, c.Name = o.redacted(Addr, c.Addr), o.redacted(Addr, c.Name)
	}
	return decisionReport{Seq: d.seq, Decision: d.Decision, LeftOut: d.leftOut}
}

func (o *Options) redact(p *peer.Peer) {
	s := &p.Server
	s.Addr, s.Name, s.Service = o.redacted(Addr, s.Addr), o.redacted(Addr, s.Name), o.redacted(Addr, s.Service)
	s.TLSName, s.Host = o.redacted(Addr, s.TLSName), o.redacted(Addr, s.Host)
	s.Route, p.SID = o.redacted(SID, s.Route), o.redacted(SID, p.SID)
	s.Zone, s.Labels = o.redacted(Label, s.Zone), labels(s.Labels, func(value string) string { return o.redacted(Label, value) })
}

// bounded is a time that JSON has a form for: years of four digits.
func bounded(t time.Time) time.Time {
	if y := t.Year(); y < 1 || y > 9999 {
		return time.Time{}
	}
	return t
}

// labels are labels with their values replaced.
func labels(l peer.Labels, f func(value string) string) peer.Labels {
	m := map[string]string{}
	for name, value := range l.All() {
		m[clip(name)] = f(value)
	}
	return peer.LabelsOf(m)
}
