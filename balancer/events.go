package balancer

import (
	"sync"

	"github.com/trunklb/trunk/peer"
)

// events hands what peer tells to the user's hook, in order, one at a time. While the
// set is being changed it waits, so that a hook may change the set itself: a
// peer that has drained may be removed where that is told. Goroutines may share it.
type events struct {
	hook   func(peer.Event)
	redact func(what, text string) string // nil: nothing is

	mu      sync.Mutex
	waiting []peer.Event
	dropped uint64
	// held counts the changes of the set that are on their way; telling says
	// that some goroutine is calling the hook.
	held    int
	telling bool
}

// newEvents returns nil for no hook.
func newEvents(hook func(peer.Event), redact func(what, text string) string) *events {
	if hook == nil {
		return nil
	}
	return &events{hook: hook, redact: redact}
}

// options returns what peer shall call; nil where nobody wants to know.
func (e *events) options() func(peer.Event) {
	if e == nil {
		return nil
	}
	return e.add
}

// mostEvents bounds what waits for a slow hook; what finds no room is counted.
const mostEvents = 1024

// add is called by peer, maybe within a change of the set: then the goroutine
// that changes it tells afterwards.
func (e *events) add(event peer.Event) {
	if e.redact != nil {
		event = redacted(event, e.redact)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) >= mostEvents {
		e.dropped += 1 + event.Dropped
		return
	}
	event.Dropped += e.dropped
	e.dropped = 0
	e.waiting = append(e.waiting, event)
	if e.held == 0 {
		e.tell()
	}
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

// hold keeps events back from the goroutines that bring them, until release.
func (e *events) hold() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held++
}

// release tells what has come since hold. The caller holds no lock.
func (e *events) release() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held--
	e.tell()
}

// tell calls the hook with what waits, unless somebody does so already. e.mu is
// held, but not while the hook runs. A panic of the hook goes on to whoever is
// here. It ends after as many events as may wait: under such a flood the next
// ones bring somebody else.
func (e *events) tell() {
	if e.telling {
		return
	}
	e.telling = true
	defer func() { e.telling = false }()
	for n := 0; n < mostEvents && len(e.waiting) > 0; n++ {
		event := e.waiting[0]
		e.waiting = e.waiting[1:]
		e.call(event)
	}
}

func (e *events) call(event peer.Event) {
	e.mu.Unlock()
	defer e.mu.Lock()
	e.hook(event)
}
