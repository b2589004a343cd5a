package machine

import (
	"time"

	"github.com/trunklb/trunk/peer"
)

// Step is one kind of thing that happens to an upstream. Where it makes no
// sense in the present state it does nothing.
type Step struct {
	Name string
	Do   func(*Machine)
}

// Steps are all kinds.
var Steps = []Step{
	{"begin and get", (*Machine).stepBegin},
	{"get", (*Machine).stepGet},
	{"event", (*Machine).stepEvent},
	{"free", (*Machine).stepFree},
	{"free and get", (*Machine).stepRetry},
	{"time", (*Machine).stepTime},
	{"misuse", (*Machine).stepMisuse},
	{"request through all", (*Machine).stepThrough},
	{"traffic", (*Machine).stepTraffic},
}

// some chooses a request that holds a peer, or one that does not; nil: none is so.
func (m *Machine) some(held bool) *request {
	var list []*request
	for _, r := range m.requests {
		if m.held(r) == held {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return oneOf(m.choose, "request", list...)
}

// outcome chooses how an attempt ends.
func (m *Machine) outcome() peer.Outcome {
	return oneOf(m.choose, "outcome", peer.OK, peer.Failed, peer.Next, peer.Abandoned)
}

// stepBegin starts a request, instead of an old one if there are many, and gets.
func (m *Machine) stepBegin() {
	if len(m.requests) == mostRequests {
		i := m.choose("ended", 0, mostRequests-1)
		if m.held(m.requests[i]) {
			m.free(m.requests[i], m.outcome())
		}
		m.end(m.requests[i])
		m.requests = append(m.requests[:i], m.requests[i+1:]...)
	}
	r := m.begin()
	m.requests = append(m.requests, r)
	m.get(r)
}

// stepGet lets a request get again: a retry, whether or not tries are left.
func (m *Machine) stepGet() {
	if r := m.some(false); r != nil {
		m.get(r)
	}
}

func (m *Machine) stepEvent() {
	if r := m.some(true); r != nil {
		m.event(r)
	}
}

func (m *Machine) stepFree() {
	if r := m.some(true); r != nil {
		m.free(r, m.outcome())
	}
}

// stepRetry is what one attempt after another looks like.
func (m *Machine) stepRetry() {
	if r := m.some(true); r != nil {
		m.free(r, m.outcome())
		m.Agree()
		m.get(r)
	}
}

// stepTime lets time pass: none that a second sees, about a fail timeout, or long.
func (m *Machine) stepTime() {
	unit := m.config.resolution()
	m.now += oneOf(m.choose, "time",
		time.Duration(m.choose("ms", 0, 999))*time.Millisecond,
		time.Duration(m.choose("ticks", 0, 35))*unit,
		704*unit, // at the default timeout least_time's shift starts again (Q3)
		time.Duration(m.choose("hours", 1, 100))*time.Hour)
	m.beside.setTime()
}

func (m *Machine) stepMisuse() {
	if len(m.requests) > 0 {
		m.misuse(oneOf(m.choose, "request", m.requests...))
	}
}

// stepThrough is a request that goes on and on with one outcome, through the
// primary and the backup group until there is no peer left.
func (m *Machine) stepThrough() {
	r, o := m.begin(), m.outcome()
	defer m.end(r)
	set := m.product.Set()
	for range set.Len(peer.Primary) + set.Len(peer.Backup) {
		if !m.get(r) {
			return
		}
		m.Agree()
		m.free(r, o)
		m.Agree()
	}
}

// stepTraffic is some requests one after the other that go well.
func (m *Machine) stepTraffic() {
	for range m.choose("requests", 1, 40) {
		r := m.begin()
		if !m.get(r) {
			m.end(r)
			return
		}
		if m.choose.chance("with event", 3) {
			m.event(r)
		}
		m.free(r, peer.OK)
		m.end(r)
		m.Agree()
	}
}
