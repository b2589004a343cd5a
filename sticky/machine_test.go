package sticky_test

import (
	"testing"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/sticky"
)

// upstreams are random upstreams with sticky over one method, whose servers have routes,
// some of them the same one.
func upstreams(method peer.Method, in model.Config, limits machine.Limits) func(machine.Choose) machine.Config {
	in.Sticky.Kind = model.StickyRoute
	return func(choose machine.Choose) machine.Config {
		limits.MostRoutes = choose("routes", 1, 6)
		return machine.Config{Servers: machine.RandomServers(choose, limits), Method: sticky.Over(method), Model: in}
	}
}

// models are the methods in the model's words.
var models = []struct {
	name   string
	method peer.Method
	model  model.Config
	limits machine.Limits
}{
	{"round robin", nil, model.Config{}, machine.Limits{}},
	{"least_conn", leastconn.New(), model.Config{Method: model.LeastConn}, machine.Limits{}},
	{"least_time header", leasttime.New(leasttime.Header),
		model.Config{Method: model.LeastTime, Time: model.Header}, machine.Limits{}},
	{"least_time header inflight", leasttime.Method{Mode: leasttime.Header, Inflight: true},
		model.Config{Method: model.LeastTime, Time: model.Header, Inflight: true}, machine.Limits{}},
	{"least_time last_byte inflight", leasttime.Method{Mode: leasttime.LastByte, Inflight: true},
		model.Config{Method: model.LeastTime, Time: model.LastByte, Inflight: true}, machine.Limits{}},
	{"hash", hash.New("$arg_k"), model.Config{Method: model.Hash}, machine.Limits{}},
	{"hash consistent", hash.NewConsistent("$arg_k"), model.Config{Method: model.HashConsistent},
		machine.Limits{MaxPeers: 20, MaxWeight: 5, SharedNames: true}},
	{"ip_hash", iphash.New(), model.Config{Method: model.IPHash}, machine.Limits{}},
	{"random", random.New(), model.Config{Method: model.Random}, machine.Limits{}},
	{"random two", random.NewTwo(), model.Config{Method: model.RandomTwo}, machine.Limits{}},
}

// TestAgreesWithTheModel runs the literal model beside sticky over every method.
func TestAgreesWithTheModel(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) { machine.Check(t, upstreams(m.method, m.model, m.limits)) })
	}
}

// FuzzModel is the same with steps made from bytes.
func FuzzModel(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte("sticky over every method, with hints known and unknown"), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		m := models[int(which)%len(models)]
		machine.Fuzz(t, data, upstreams(m.method, m.model, machine.Limits{MaxPeers: 20, MaxWeight: 5, SharedNames: true}))
	})
}
