package debugpage

import (
	"slices"
	"strings"
	"sync"

	"github.com/trunklb/trunk/peer"
)

// Source is an upstream whose state can be read: *balancer.Upstream and
// *peer.Upstream are.
type Source interface {
	Snapshot() peer.Snapshot
}

// Panel is the part of a Page that shows one upstream. Decision and Event are
// there to be given as hooks, and Watch names the upstream whose state is read when
// the page is requested. Goroutines may share a Panel.
type Panel struct {
	name string
	opt  *Options

	mu      sync.Mutex
	source  Source
	picks   ring[pick]
	events  ring[happening]
	dropped uint64
}

// happening is an event, and how often in a row it was reported.
type happening struct {
	peer.Event
	times  uint64
	pick   pick // the copy of Event.Decision
	reason bool // there is one
}

// says reports whether h is the same event. Failures, and what becomes of them, are
// each a story of its own.
func (h *happening) says(e *peer.Event) bool {
	switch e.Kind {
	case peer.PeerFailed, peer.PeerEjected, peer.PeerProbed, peer.PeerAlive, peer.NamesChanged:
		return false
	}
	return h.Kind == e.Kind && h.Peer.Group == e.Peer.Group && h.Peer.Index == e.Peer.Index && h.Fails == e.Fails &&
		h.EffectiveAfter == e.EffectiveAfter && h.Peer.Server.Addr == clip(e.Peer.Server.Addr) && sameName(h.Lookup, e.Lookup)
}

func newPanel(name string, opt *Options) *Panel {
	return &Panel{name: name, opt: opt, picks: ring[pick]{size: opt.Picks}, events: ring[happening]{size: opt.Events}}
}

// Name returns the name that the panel was made with.
func (p *Panel) Name() string { return p.name }

// Watch sets where the panel reads the state, once for each page that is asked
// for. nil: nowhere, as before the first call.
func (p *Panel) Watch(s Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source = s
}

// Decision adds the record of one get. It copies what it keeps, so that d can be
// used again. Decisions may come in another order than they were made in; the page
// sorts them by time.
func (p *Panel) Decision(d *peer.Decision) {
	if d == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.picks.next().keep(p.picks.written, d, p.opt.Peers)
}

// Event adds an event. One that is no failure and says the same as the one before it
// takes its place and is counted, or an upstream without live peers would soon
// show nothing else.
func (p *Panel) Event(e peer.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped += e.Dropped
	h := p.events.last()
	if h == nil || !h.says(&e) {
		h = p.events.next()
		h.times = 0
	}
	h.times++
	if h.reason = e.Decision != nil; h.reason {
		h.pick.keep(h.times, e.Decision, p.opt.Peers)
	}
	h.Event = e
	h.Event.Decision = nil
	clipServer(&h.Peer.Server)
	h.Lookup = clipLookup(e.Lookup, p.opt.Peers)
}

// kept is what a panel has at one moment, as a copy.
type kept struct {
	name     string
	watched  bool
	snapshot peer.Snapshot
	picks    []pick      // the oldest first
	events   []happening // the oldest first
	seen     uint64      // decisions
	noted    uint64      // events that took a place of their own
	dropped  uint64
}

func (p *Panel) kept() kept {
	k, source := p.copied()
	if source != nil {
		// Outside the lock: the upstream may have one of its own, and be
		// waiting in a hook for ours.
		k.watched, k.snapshot = true, source.Snapshot()
		for i := range k.snapshot.Peers {
			clipServer(&k.snapshot.Peers[i].Server)
		}
	}
	slices.SortStableFunc(k.picks, func(a, b pick) int { return a.Time.Compare(b.Time) })
	return k
}

func (p *Panel) copied() (kept, Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := kept{name: p.name, seen: p.picks.written, noted: p.events.written, dropped: p.dropped}
	p.picks.each(func(d *pick) { k.picks = append(k.picks, d.copied()) })
	p.events.each(func(h *happening) {
		c := *h
		c.pick = h.pick.copied()
		k.events = append(k.events, c)
	})
	return k, p.source
}

// clipServer bounds the texts of a server line. They are clipped wherever they come
// from, so that peers are found again by them.
func clipServer(s *peer.Server) {
	for _, text := range []*string{&s.Addr, &s.Name, &s.Service, &s.Route, &s.TLSName, &s.Host, &s.Zone} {
		*text = strings.Clone(clip(*text))
	}
	s.Labels = labels(s.Labels, clip)
}
