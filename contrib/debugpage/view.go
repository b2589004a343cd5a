package debugpage

import (
	_ "embed" // the page's parts
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trunklb/trunk/peer"
)

//go:embed page.html
var layout string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "percent": percent, "clock": clock, "instant": instant, "span": span, "bar": bar,
	"css": func() template.CSS { return template.CSS(style) },
	"js":  func() template.JS { return template.JS(script) },
}).Parse(layout))

// view is what the template shows.
type view struct {
	Query    string
	Upstream string // the one that was asked for
	Names    []link
	Panels   []panelView
}

// link leads to one panel.
type link struct {
	Raw, Shown string
	Current    bool
}

type panelView struct {
	ID                   string // by number: names are not to be trusted as one
	Name                 string
	Watched              bool
	Method               string
	Version              int
	Now                  time.Time
	Counts               []count // of the states
	Gets                 uint64
	Retries, NoLivePeers uint64
	Rows                 []row
	Hidden               int // rows for which there was no room
	Peers                int
	Recent               int // picks in the chart
	Seen                 uint64
	Chart                chart
	Decisions            []decisionView
	Events               []eventView
	Dropped              uint64
}

// count is how many peers are in a state.
type count struct {
	state
	Peers int
}

func (p *Page) writeHTML(w io.Writer, ask question) error {
	v := view{Query: ask.query, Upstream: ask.upstream}
	for _, panel := range p.all("") {
		v.Names = append(v.Names, link{clip(panel.name), visible(clip(panel.name)), clip(panel.name) == ask.upstream})
	}
	for i, panel := range p.all(ask.upstream) {
		one := p.opt.panel(panel.kept(), ask)
		one.ID = "u" + strconv.Itoa(i+1)
		v.Panels = append(v.Panels, one)
	}
	return page.Execute(w, v)
}

// panel makes one panel of what was kept.
func (o *Options) panel(k kept, ask question) panelView {
	v := panelView{Name: visible(clip(k.name)), Watched: k.watched, Seen: k.seen, Dropped: k.dropped, Recent: len(k.picks),
		Method: k.snapshot.Method, Version: k.snapshot.Version, Now: k.snapshot.Time,
		Retries: k.snapshot.Retries, NoLivePeers: k.snapshot.NoLivePeers}
	if !k.watched && len(k.picks) > 0 {
		last := &k.picks[len(k.picks)-1]
		v.Method, v.Now = last.Method, last.Time
	}
	v.Method = visible(clip(v.Method))
	rows := o.rows(&k)
	v.Peers = len(rows)
	v.Counts = counts(rows)
	for i := range rows {
		v.Gets += rows[i].Gets
	}
	rows = matching(rows, ask.query)
	plotted := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !r.looked })
	v.Chart = o.chart(&k, chosen(plotted, o.Charted))
	v.Chart.Missing = len(rows) - len(v.Chart.Plots)
	v.Rows = chosen(rows, o.Rows)
	v.Hidden = len(rows) - len(v.Rows)
	v.Decisions = o.decisions(&k, v.Now, ask.query)
	v.Events = o.events(&k, v.Now, ask.query)
	return v
}

// counts says how many rows are in each state, the best states first.
func counts(rows []row) []count {
	var all []count
	for _, s := range []state{live, recovering, due, full, out, draining, down, removed} {
		n := 0
		for i := range rows {
			if rows[i].State.Word == s.Word {
				n++
			}
		}
		if n > 0 {
			all = append(all, count{s, n})
		}
	}
	return all
}

// decisionView is a decision in words.
type decisionView struct {
	Seq     uint64
	Time    time.Time
	Age     time.Duration
	Taken   string // "": none
	Rule    string
	Try     int
	Key     string
	Text    string
	LeftOut int
}

// decisions are the newest ones of which the winner is asked for, or which had
// no winner among those that are.
func (o *Options) decisions(k *kept, now time.Time, query string) []decisionView {
	var all []decisionView
	for i := len(k.picks) - 1; i >= 0 && len(all) < o.Decisions; i-- {
		if v := o.words(&k.picks[i], now); v.concerns(query) {
			all = append(all, v)
		}
	}
	return all
}

func (o *Options) words(k *pick, now time.Time) decisionView {
	d := o.decision(k)
	for n := range d.Peers {
		c := &d.Peers[n]
		c.Addr, c.Name, c.Detail = visible(c.Addr), visible(c.Name), visible(c.Detail)
	}
	d.Method = visible(clip(d.Method))
	v := decisionView{Seq: d.Seq, Time: d.Time, Age: now.Sub(d.Time), Try: d.Try, Key: visible(d.Key), Text: d.String(), LeftOut: d.LeftOut}
	if w := d.Decision.Winner; w >= 0 {
		v.Taken, v.Rule = d.Peers[w].Addr, d.Rule
	}
	return v
}

func (v *decisionView) concerns(query string) bool {
	return query == "" || contains(v.Taken, query) || v.Taken == "" && contains(v.Text, query)
}

// eventView is an event in words.
type eventView struct {
	Time    time.Time
	Age     time.Duration
	Kind    string
	Tone    string
	Peer    string
	Text    string
	Times   uint64
	Dropped uint64
	Reason  string
}

func (o *Options) events(k *kept, now time.Time, query string) []eventView {
	var all []eventView
	for i := len(k.events) - 1; i >= 0; i-- {
		h := &k.events[i]
		v := eventView{Time: h.Time, Age: now.Sub(h.Time), Kind: h.Kind.String(), Tone: tone(h.Kind),
			Peer: o.shown(Addr, h.Peer.Server.Addr), Text: eventText(&h.Event), Times: h.times, Dropped: h.Dropped}
		if h.Lookup != nil {
			v.Peer, v.Text = o.shown(Addr, h.Lookup.Host), o.lookupText(h.Lookup)
		}
		if h.reason {
			w := o.words(&h.pick, now)
			v.Reason = w.Text
		}
		if query == "" || contains(v.Peer, query) || contains(v.Reason, query) {
			all = append(all, v)
		}
	}
	return all
}

// eventText is what an event's numbers say.
func eventText(e *peer.Event) string {
	switch e.Kind {
	case peer.PeerFailed, peer.PeerEjected:
		text := number(e.Fails)
		if e.Peer.Server.MaxFails > 0 {
			text += " of " + number(int64(e.Peer.Server.MaxFails))
		}
		if e.EffectiveBefore != e.EffectiveAfter {
			text += ", ew " + number(e.EffectiveBefore) + " \u2192 " + number(e.EffectiveAfter)
		}
		return text
	case peer.PeerProbed, peer.PeerAlive:
		return "ew " + number(e.EffectiveAfter) + " of " + number(int64(e.Peer.Server.Weight))
	case peer.PeerFull:
		return "conns " + number(e.Conns)
	case peer.PeerIdle:
		if e.Removed {
			return "was removed"
		}
	}
	return ""
}

// tone is how an event is coloured.
func tone(k peer.EventKind) string {
	switch k {
	case peer.PeerFailed, peer.PeerEjected, peer.NoLivePeers, peer.LookupFailed:
		return "bad"
	case peer.PeerProbed, peer.PeerFull:
		return "warn"
	case peer.PeerAlive:
		return "good"
	}
	return "calm"
}

// contains compares without case.
func contains(text, query string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(query))
}
