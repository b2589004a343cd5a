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
type TB interface {
	require.TestingT
	Helper()
}

// Machine is a product and a model that are used alike.
type Machine struct {
	t       TB
	config  Config
	choose  Choose
	product *peer.Upstream
	model   *model.Balancer
	draws   tape
	now     time.Duration
	// requests have begun. Those that hold a peer may be freed, the others get.
	requests []*request
	// spare are requests that have ended; they are begun anew.
	spare []*request
}

// request is one request of the product, and the model's of it.
type request struct {
	product   peer.Request
	model     *model.Request
	taken     time.Duration
	connected bool
}

// mostRequests is how many requests are under way at one time.
const mostRequests = 12

// New makes a machine. Product and model must both accept the configuration. It
// chooses the product's engine too, for the whole process; Check and Fuzz undo that.
func New(t TB, c Config, choose Choose) *Machine {
	m := &Machine{t: t, config: c, choose: choose}
	// One engine, the other, or as the product chooses.
	engine.ScanMost = oneOf(choose, "engine", 12, 0, 1000)
	// The first is nginx's usual case. nginx's checked starts at 0, so that a
	// clock near 0 is another case.
	m.now = oneOf(choose, "epoch", 1_700_000_000*time.Second, 0, 3*time.Second+500*time.Millisecond)
	m.draws.random = rand.NewPCG(uint64(choose("seed", 0, 1<<16-1)), 0)

	o := c.Options
	o.Clock = func() time.Duration { return m.now }
	o.Source = productDraws{&m.draws}
	var err error
	m.product, err = peer.New(c.Servers, c.Method, &o)
	require.NoError(t, err)
	m.model, err = model.New(c.modelConfig(m.draws.forModel))
	require.NoError(t, err)
	m.setTime()
	return m
}

// setTime tells the model the time: in the product's ticks, if those are not seconds.
func (m *Machine) setTime() {
	m.model.SetTime(int64(m.now / (m.config.resolution() / 1000)))
}

// Agree demands that all fields of all peers are equal, and that as many
// random numbers were drawn.
func (m *Machine) Agree() {
	m.t.Helper()
	for group := range 2 {
		for i := range m.product.Set().Len(group) {
			want := m.model.State(model.Peer{Group: group, Index: i})
			got := modelState(m.product.State(group, i))
			if got != want { // require is slow
				require.Equal(m.t, want, got, "peer %d of group %d", i, group)
			}
		}
	}
	require.Equal(m.t, m.draws.model, m.draws.product, "random numbers drawn")
}

// modelState is a product's state in the model's words.
func modelState(s peer.State) model.State {
	return model.State{
		CurrentWeight: s.CurrentWeight, EffectiveWeight: s.EffectiveWeight,
		Conns: s.Conns, Fails: s.Fails, Accessed: s.Accessed, Checked: s.Checked,
		HeaderTime: s.Times.Header, ResponseTime: s.Times.Response, ConnectTime: s.Times.Connect,
		InflightTime: s.Times.Inflight, InflightLast: s.Times.InflightLast,
		InflightChanged: s.Times.InflightChanged, InflightReqs: s.Times.InflightReqs,
	}
}

// begin starts a request.
func (m *Machine) begin() *request {
	m.t.Helper()
	in := model.Input{
		Key:    oneOf(m.choose, "key", "/", "/index.html", "user-42", "a", "b", "c", ""),
		Client: oneOf(m.choose, "client", clients...),
		Hint:   m.hint(),
		Tries:  oneOf(m.choose, "tries", 0, 0, 0, 1, 2, 5),
	}
	r := &request{}
	if n := len(m.spare); n > 0 {
		r, m.spare = m.spare[n-1], m.spare[:n-1]
	}
	r.model = m.model.Begin(in)
	r.product.Key, r.product.Client, r.product.Hint = in.Key, in.Client, in.Hint
	r.product.MaxTries, r.product.Stream = in.Tries, m.config.Model.Stream
	require.NoError(m.t, m.product.Begin(&r.product))
	require.Equal(m.t, r.model.Tries(), r.product.Tries(), "tries at the start")
	return r
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
		return oneOf(m.choose, "strange hint", "", "nobody")
	}
	if set.Len(group) == 0 {
		return ""
	}
	return set.SID(group, m.choose("hinted peer", 0, set.Len(group)-1))
}

// held tells whether the request holds a peer; product and model must agree.
func (m *Machine) held(r *request) bool {
	m.t.Helper()
	want, ok := r.model.Held()
	got, has := m.product.Peer(&r.product)
	require.Equal(m.t, ok, has, "holds a peer")
	require.Equal(m.t, want, model.Peer{Group: got.Group, Index: got.Index}, "the peer that is held")
	return ok
}

// get asks for a peer, and tells whether there was one.
func (m *Machine) get(r *request) bool {
	m.t.Helper()
	r.taken, r.connected = m.now, false
	_, ok := m.model.Get(r.model)
	err := m.product.Get(&r.product)
	if ok {
		require.NoError(m.t, err)
	} else {
		require.ErrorIs(m.t, err, peer.ErrNoLivePeers)
	}
	m.held(r)
	require.Equal(m.t, r.model.Tries(), r.product.Tries(), "tries after a get")
	return ok
}

var modelOutcomes = map[peer.Outcome]model.Outcome{
	peer.OK: model.OK, peer.Failed: model.Failed, peer.Next: model.Next, peer.Abandoned: model.Abandoned,
}

// free ends an attempt.
func (m *Machine) free(r *request, o peer.Outcome) {
	m.t.Helper()
	// nginx does not know the response time of an attempt that is passed on;
	// in stream only an attempt whose connect failed is. Abandoned is ours.
	response := int64(-1)
	if o == peer.OK || o == peer.Abandoned || m.config.Model.Stream && r.connected {
		response = m.age(r)
	}
	require.True(m.t, m.model.Free(r.model, modelOutcomes[o], response))
	require.NoError(m.t, m.product.Free(&r.product, o))
	m.held(r)
	require.Equal(m.t, r.model.Tries(), r.product.Tries(), "tries after a free")
}

// age is the time since the get, in milliseconds.
func (m *Machine) age(r *request) int64 { return int64((m.now - r.taken) / time.Millisecond) }

// event reports that the answer, or in stream the connection, makes progress.
func (m *Machine) event(r *request) {
	m.t.Helper()
	switch {
	case !m.config.Model.Stream:
		m.model.Header(r.model, m.age(r), "")
		require.NoError(m.t, m.product.Header(&r.product))
	case !r.connected:
		r.connected = true
		m.model.Connected(r.model, m.age(r))
		require.NoError(m.t, m.product.Connected(&r.product))
	default:
		m.model.FirstByte(r.model, m.age(r))
		require.NoError(m.t, m.product.FirstByte(&r.product))
	}
}

// misuse makes the calls that a request in its present state must not make.
// They are refused, and that nothing has changed shows in Agree.
func (m *Machine) misuse(r *request) {
	m.t.Helper()
	if m.held(r) {
		require.ErrorIs(m.t, m.product.Get(&r.product), peer.ErrHeld)
		require.ErrorIs(m.t, m.product.Begin(&r.product), peer.ErrHeld)
		require.ErrorIs(m.t, m.product.Free(&r.product, peer.Abandoned+1), peer.ErrOutcome)
	} else {
		for _, err := range []error{
			m.product.Free(&r.product, peer.Failed), m.product.Header(&r.product),
			m.product.Connected(&r.product), m.product.FirstByte(&r.product),
		} {
			require.ErrorIs(m.t, err, peer.ErrNotHeld)
		}
	}
	var stranger peer.Request
	require.True(m.t, errors.Is(m.product.Get(&stranger), peer.ErrNotBegun) &&
		errors.Is(m.product.Free(&stranger, peer.OK), peer.ErrNotBegun))
	require.Equal(m.t, r.model.Tries(), r.product.Tries(), "tries after a refused call")
}

// tape lets product and model draw the same random numbers, each at its own pace.
type tape struct {
	random         rand.Source
	drawn          []uint32 // that not both have had
	product, model int      // how many each has had
}

func (d *tape) at(place *int) uint32 {
	start := max(d.product, d.model) - len(d.drawn)
	if low := min(d.product, d.model); low > start {
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

func (d *tape) forModel() uint32 { return d.at(&d.model) }

// productDraws is the tape as the product's source: its draws are the top 31 bits.
type productDraws struct{ *tape }

func (d productDraws) Uint64() uint64 { return uint64(d.at(&d.product)) << 33 }
