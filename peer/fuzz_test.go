package peer_test

import (
	"testing"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/random"
)

// FuzzUpstream lets bytes choose a method, its servers and what happens to them:
// the product must always agree with the literal model, and never panic.
func FuzzUpstream(f *testing.F) {
	for method := range fuzzMethods {
		f.Add([]byte{byte(method)})
		f.Add([]byte{byte(method), 0, 2, 2, 1, 5, 1, 0, 0, 0, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0,
			0, 0, 0, 0, 0, 4, 0, 1, 0, 5, 2, 0, 8, 7, 7, 3, 3, 5, 1, 12, 0, 0, 1, 2, 0, 0, 3, 0, 1, 6, 0})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		machine.Fuzz(t, data, func(choose machine.Choose) machine.Config {
			c := fuzzMethods[choose("method", 0, len(fuzzMethods)-1)]
			limits := machine.Limits{MaxPeers: 150}
			if c.Model.Method == model.HashConsistent {
				limits = machine.Limits{MaxPeers: 20, MaxWeight: 3, SharedNames: true}
			}
			c.Servers = machine.RandomServers(choose, limits)
			return c
		})
	})
}

// fuzzMethods are the methods in the product's words and in the model's.
var fuzzMethods = []machine.Config{
	{Model: model.Config{Method: model.RoundRobin}},
	{Model: model.Config{Method: model.RoundRobin, Stream: true}},
	{Method: leastconn.New(), Model: model.Config{Method: model.LeastConn}},
	{Method: leasttime.New(leasttime.Header), Model: model.Config{Method: model.LeastTime, Time: model.Header}},
	{Method: leasttime.Method{Mode: leasttime.Header, Inflight: true},
		Model: model.Config{Method: model.LeastTime, Time: model.Header, Inflight: true}},
	{Method: leasttime.Method{Mode: leasttime.LastByte, Inflight: true},
		Model: model.Config{Method: model.LeastTime, Time: model.LastByte, Inflight: true}},
	{Method: leasttime.Method{Mode: leasttime.FirstByte, Inflight: true},
		Model: model.Config{Method: model.LeastTime, Time: model.FirstByte, Inflight: true, Stream: true}},
	{Method: hash.New("$uri"), Model: model.Config{Method: model.Hash}},
	{Method: hash.NewConsistent("$uri"), Model: model.Config{Method: model.HashConsistent}},
	{Method: iphash.New(), Model: model.Config{Method: model.IPHash}},
	{Method: random.New(), Model: model.Config{Method: model.Random}},
	{Method: random.NewTwo(), Model: model.Config{Method: model.RandomTwo}},
}
