package machine

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/peer"
)

// literal is the model beside the product.
type literal struct {
	m     *Machine
	model *model.Balancer
}

// setTime gives the time in the product's ticks, if those are not seconds.
func (l *literal) setTime() {
	l.model.SetTime(int64(l.m.now / (l.m.config.resolution() / 1000)))
}

func (l *literal) bring(r *peer.Request) { r.Stream = l.m.config.Model.Stream }

func (l *literal) begin(r *request) {
	p := &r.product
	r.model = l.model.Begin(model.Input{Key: p.Key, Client: p.Client, Hint: p.Hint, Tries: p.MaxTries})
}

func (l *literal) get(r *request) bool {
	_, ok := l.model.Get(r.model)
	return ok
}

var modelOutcomes = map[peer.Outcome]model.Outcome{
	peer.OK: model.OK, peer.Failed: model.Failed, peer.Next: model.Next, peer.Abandoned: model.Abandoned,
}

func (l *literal) free(r *request, o peer.Outcome) {
	// nginx does not know the response time of an attempt that is passed on;
	// in stream only an attempt whose connect failed is. Abandoned is ours.
	response := int64(-1)
	if o == peer.OK || o == peer.Abandoned || r.product.Stream && r.connected {
		response = l.age(r)
	}
	require.True(l.m.t, l.model.Free(r.model, modelOutcomes[o], response))
}

// age is the time since the get, in milliseconds.
func (l *literal) age(r *request) int64 { return int64((l.m.now - r.taken) / time.Millisecond) }

func (l *literal) event(r *request) {
	switch {
	case !r.product.Stream:
		l.model.Header(r.model, l.age(r), "")
	case !r.connected:
		l.model.Connected(r.model, l.age(r))
	default:
		l.model.FirstByte(r.model, l.age(r))
	}
}

func (l *literal) held(r *request) (group, index int, ok bool) {
	p, ok := r.model.Held()
	return p.Group, p.Index, ok
}

func (l *literal) tries(r *request) int { return r.model.Tries() }

// misuse: the model is never called so.
func (l *literal) misuse(*request) {}

// agree compares all fields of all peers.
func (l *literal) agree() {
	for group := range 2 {
		for i := range l.m.product.Set().Len(group) {
			want := l.model.State(model.Peer{Group: group, Index: i})
			got := modelState(l.m.product.State(group, i))
			if got != want { // require is slow
				require.Equal(l.m.t, want, got, "peer %d of group %d", i, group)
			}
		}
	}
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
