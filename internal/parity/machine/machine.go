package machine

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/peer"
)

// TB is what a machine needs of a *testing.T or *rapid.T.
type TB = require.TestingT

// withoutHelper hides the Helper of a TB from require. Helper walks the stack at
// each call, which took more than half of the tests' CPU time, and is not needed:
// require reports the whole stack.
type withoutHelper struct{ TB }

// Machine is a product and what runs beside it, used alike.
type Machine struct {
	t       TB
	config  Config
	choose  Choose
	product *peer.Upstream
	beside  beside
	steps   []Step
	draws   tape
	now     time.Duration
	// requests have begun. Those that hold a peer may be freed, the others get.
	requests []*request
	// spare are requests that have ended; they are begun again.
	spare []*request
}

// beside is what runs beside a product. It is used as the product is, after it, and
// fails the test where it does not do the same.
type beside interface {
	// setTime follows a change of the machine's time.
	setTime()
	// bring gives a request what else it brings.
	bring(r *peer.Request)
	begin(r *request)
	// get reports whether a peer was available.
	get(r *request) bool
	free(r *request, o peer.Outcome)
	event(r *request)
	// held is the peer that the request holds; Tries are those that it has left.
	held(r *request) (group, index int, ok bool)
	tries(r *request) int
	misuse(r *request)
	// agree demands that the whole state is the same.
	agree()
}

// request is one request of the product, and that of what is beside.
type request struct {
	product   peer.Request
	model     *model.Request
	twin      peer.Request
	taken     time.Duration
	connected bool
}

// mostRequests is how many requests are under way at one time.
const mostRequests = 12

// New makes a machine with the model beside the product. Both must accept the
// configuration. It chooses the product's engine too, for the whole process; Check and Fuzz undo that.
func New(t TB, c Config, choose Choose) *Machine {
	// One engine, the other, or as the product chooses.
	engine.ScanMost = oneOf(choose, "engine", 12, 0, 1000)
	m := newMachine(t, c, choose)
	var err error
	m.product, err = peer.New(c.Servers, c.Method, m.options(m.draws.forProduct))
	require.NoError(t, err)
	b, err := model.New(c.modelConfig(m.draws.forBeside))
	require.NoError(t, err)
	m.beside, m.steps = &literal{m, b}, Steps
	m.beside.setTime()
	return m
}

// newMachine makes a machine that has no upstream yet.
func newMachine(t TB, c Config, choose Choose) *Machine {
	m := &Machine{t: withoutHelper{t}, config: c, choose: choose}
	// The first is nginx's usual case. nginx's checked starts at 0, so that a
	// clock near 0 is another case.
	m.now = oneOf(choose, "epoch", 1_700_000_000*time.Second, 0, 3*time.Second+500*time.Millisecond)
	m.draws.random = rand.NewPCG(uint64(choose("seed", 0, 1<<16-1)), 0)
	return m
}

// options are the configuration's, with the machine's time and random numbers.
func (m *Machine) options(draw func() uint32) *peer.Options {
	o := m.config.Options
	o.Clock = func() time.Duration { return m.now }
	o.Source = source(draw)
	return &o
}

// Agree demands that the whole state is the same, and that as many random numbers
// were drawn.
func (m *Machine) Agree() {
	m.beside.agree()
	if m.draws.beside != m.draws.product {
		require.Equal(m.t, m.draws.beside, m.draws.product, "random numbers drawn")
	}
}

// begin starts a request.
func (m *Machine) begin() *request {
	r := &request{}
	if n := len(m.spare); n > 0 {
		r, m.spare = m.spare[n-1], m.spare[:n-1]
	}
	m.bring(&r.product)
	r.product.MaxTries = oneOf(m.choose, "tries", 0, 0, 0, 1, 2, 5)
	require.NoError(m.t, m.product.Begin(&r.product))
	m.beside.begin(r)
	m.sameTries(r, "at the start")
	return r
}

// bring gives a request what it brings to the choice of its peer.
func (m *Machine) bring(r *peer.Request) {
	r.Key = oneOf(m.choose, "key", "/", "/index.html", "user-42", "a", "b", "c", "")
	r.Client = oneOf(m.choose, "client", clients...)
	r.Hint = m.hint()
	m.beside.bring(r)
}

var clients = []netip.Addr{
	netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.99"), netip.MustParseAddr("198.51.100.7"),
	netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::ffff:192.0.2.1"), {},
}

// end lets a request that holds no peer be used again.
func (m *Machine) end(r *request) { m.spare = append(m.spare, r) }

// hint is a sid for sticky: none, that of a peer, or one that no peer has.
func (m *Machine) hint() string {
	if m.config.Model.Sticky.Kind == model.NoSticky {
		return ""
	}
	set := m.product.Set()
	group := m.choose("hint", 0, 3)
	if group >= 2 {
		return oneOf(m.choose, "strange hint", "", "unknown")
	}
	if set.Len(group) == 0 {
		return ""
	}
	return set.SID(group, m.choose("hinted peer", 0, set.Len(group)-1))
}

// held reports whether the request holds a peer, which must be the same one.
func (m *Machine) held(r *request) bool {
	group, index, ok := m.beside.held(r)
	got, has := m.product.Peer(&r.product)
	if ok != has || group != got.Group || index != got.Index {
		require.Equal(m.t, ok, has, "holds a peer")
		require.Equal(m.t, [2]int{group, index}, [2]int{got.Group, got.Index}, "the peer that is held")
	}
	return ok
}

func (m *Machine) sameTries(r *request, when string) {
	if want, got := m.beside.tries(r), r.product.Tries(); want != got {
		require.Equal(m.t, want, got, "tries %s", when)
	}
}

// get asks for a peer, and reports whether there was one.
func (m *Machine) get(r *request) bool {
	r.taken, r.connected = m.now, false
	err := m.product.Get(&r.product)
	ok := m.beside.get(r)
	if ok {
		require.NoError(m.t, err)
	} else {
		require.ErrorIs(m.t, err, peer.ErrNoLivePeers)
	}
	m.held(r)
	m.sameTries(r, "after a get")
	return ok
}

// free ends an attempt.
func (m *Machine) free(r *request, o peer.Outcome) {
	require.NoError(m.t, m.product.Free(&r.product, o))
	m.beside.free(r, o)
	m.held(r)
	m.sameTries(r, "after a free")
}

// event reports that the answer, or in stream the connection, makes progress.
func (m *Machine) event(r *request) {
	require.NoError(m.t, progress(m.product, &r.product, r.connected))
	m.beside.event(r)
	r.connected = true
}

// progress reports to an upstream what comes next of a request.
func progress(u *peer.Upstream, r *peer.Request, connected bool) error {
	switch {
	case !r.Stream:
		return u.Header(r)
	case !connected:
		return u.Connected(r)
	default:
		return u.FirstByte(r)
	}
}

// misuse makes the calls that a request in its present state must not make.
// They are refused, and that nothing has changed shows in Agree.
func (m *Machine) misuse(r *request) {
	m.refuses(m.product, &r.product, m.held(r))
	m.beside.misuse(r)
	m.sameTries(r, "after a refused call")
}

// refuses makes those calls.
func (m *Machine) refuses(u *peer.Upstream, r *peer.Request, held bool) {
	if held {
		require.ErrorIs(m.t, u.Get(r), peer.ErrHeld)
		require.ErrorIs(m.t, u.Begin(r), peer.ErrHeld)
		require.ErrorIs(m.t, u.Free(r, peer.Abandoned+1), peer.ErrOutcome)
	} else {
		for _, err := range []error{u.Free(r, peer.Failed), u.Header(r), u.Connected(r), u.FirstByte(r)} {
			require.ErrorIs(m.t, err, peer.ErrNotHeld)
		}
	}
	var stranger peer.Request
	require.True(m.t, errors.Is(u.Get(&stranger), peer.ErrNotBegun) &&
		errors.Is(u.Free(&stranger, peer.OK), peer.ErrNotBegun))
}

// tape lets the product and what is beside it draw the same random numbers, each at its own pace.
type tape struct {
	random          rand.Source
	drawn           []uint32 // that not both have had
	product, beside int      // how many each has had
}

func (d *tape) at(place *int) uint32 {
	start := max(d.product, d.beside) - len(d.drawn)
	if low := min(d.product, d.beside); low > start {
		d.drawn = d.drawn[low-start:]
		start = low
	}
	if *place-start == len(d.drawn) {
		d.drawn = append(d.drawn, uint32(d.random.Uint64()>>33))
	}
	n := d.drawn[*place-start]
	*place++
	return n
}

func (d *tape) forProduct() uint32 { return d.at(&d.product) }
func (d *tape) forBeside() uint32  { return d.at(&d.beside) }

// source makes draws a product's source: they are the top 31 bits of its numbers.
type source func() uint32

// Uint64 implements rand.Source.
func (s source) Uint64() uint64 { return uint64(s()) << 33 }
