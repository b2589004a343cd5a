package machine

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/peer"
)

// twinSteps are the kinds of steps that the model cannot take.
var twinSteps = []Step{
	{"update", (*Machine).stepUpdate},
	{"update and get", (*Machine).stepUpdateAndGet},
	{"explained get", (*Machine).stepExplain},
	{"bring other things", (*Machine).stepBring},
	{"give back a try", (*Machine).stepGiveBack},
	{"time goes back", (*Machine).stepBack},
}

// stepUpdate changes the servers, or tries to: both refuse the same ones.
func (m *Machine) stepUpdate() {
	w, next := m.beside.(*twin), m.otherServers()
	engine.ScanMost = scan
	err := m.product.Update(next)
	// Now and then a group has become small enough for the scan.
	engine.ScanMost = oneOf(m.choose, "twin's engine", queues, queues, 12, scan)
	require.Equal(m.t, err, w.up.Update(next))
	if err == nil {
		m.config.Servers = next
	}
	for _, r := range m.requests {
		m.held(r)
	}
}

// stepUpdateAndGet is an update between the tries of a request.
func (m *Machine) stepUpdateAndGet() {
	r := m.some(true)
	m.stepUpdate()
	if r != nil {
		m.Agree()
		m.free(r, m.outcome())
		m.Agree()
		m.get(r)
	}
}

// otherServers makes servers from the present ones by a few changes.
func (m *Machine) otherServers() []peer.Server {
	list := slices.Clone(m.config.Servers)
	k := randomKind(m.choose, m.config.Limits)
	for range m.choose("changes", 1, 4) {
		list = m.changed(list, k)
	}
	return list
}

// changed makes one change.
func (m *Machine) changed(list []peer.Server, k kind) []peer.Server {
	place := func() int { return m.choose("place", 0, max(0, len(list)-1)) }
	change := m.choose("change", 0, 9)
	if len(list) == 0 {
		change = 0
	}
	switch change {
	case 0: // or one more of an address that there is
		return slices.Insert(list, place(), k.server(m.choose, m.choose("number", 0, 2*len(list))))
	case 1, 2:
		i := place()
		return slices.Delete(list, i, i+1)
	case 3:
		i, j := place(), place()
		list[i], list[j] = list[j], list[i]
	case 4:
		return RandomServers(m.choose, m.config.Limits)
	case 5:
		s := &list[place()]
		s.Backup = !s.Backup
	case 6:
		s := &list[place()]
		s.Down, s.Drain = m.choose.chance("down", 2), m.choose.chance("drain", 2)
	case 7:
		i := place()
		addr := list[i].Addr
		list[i] = k.server(m.choose, 0)
		list[i].Addr = addr
	default:
		s, other := &list[place()], k.server(m.choose, 0)
		switch m.choose("field", 0, 3) {
		case 0:
			s.Weight = other.Weight
		case 1:
			s.MaxFails = other.MaxFails
		case 2:
			s.MaxConns = other.MaxConns
		case 3:
			s.FailTimeout = other.FailTimeout
		}
	}
	return list
}

// stepExplain is a get whose decision is recorded.
func (m *Machine) stepExplain() {
	r := m.some(false)
	if r == nil {
		return
	}
	w := m.beside.(*twin)
	r.taken, r.connected = m.now, false
	var ours, theirs peer.Decision
	got := w.got(m.product.Explain(&r.product, &ours))
	require.Equal(m.t, got, w.got(w.up.Explain(&r.twin, &theirs)))
	require.Equal(m.t, ours, theirs)
	m.held(r)
	m.sameTries(r, "after a get")
}

// stepBring lets a request bring other things from now on.
func (m *Machine) stepBring() {
	if r := m.some(false); r != nil {
		m.bring(&r.product)
		m.beside.(*twin).brought(r)
	}
}

func (m *Machine) stepGiveBack() {
	if len(m.requests) > 0 {
		r := oneOf(m.choose, "request", m.requests...)
		m.product.Internal(glue.Key{}).GiveBackTry(&r.product)
		m.beside.(*twin).up.Internal(glue.Key{}).GiveBackTry(&r.twin)
	}
}

// stepBack: a clock may be set back.
func (m *Machine) stepBack() {
	m.now -= min(m.now, time.Duration(m.choose("ms", 0, 20_000))*time.Millisecond)
}
