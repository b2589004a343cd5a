package peer_test

import (
	"testing"
	"time"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// TestEnginesLockstep has all that can happen to an upstream happen to two of
// them, one of which has the scan and the other the queues: they must do the same.
func TestEnginesLockstep(t *testing.T) {
	t.Run("all doors", func(t *testing.T) { checkTwins(t, allDoors{}) })
	eachMethod(t, checkTwins)
}

func checkTwins(t *testing.T, m peer.Method) {
	machine.CheckTwins(t, func(choose machine.Choose) machine.Config { return twins(m, choose) })
}

// FuzzEngines is the same with steps made from bytes.
func FuzzEngines(f *testing.F) {
	for method := range methods {
		f.Add([]byte("all that can happen happens to two"), uint8(method))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		m := methods[int(which)%len(methods)].method
		machine.FuzzTwins(t, data, func(choose machine.Choose) machine.Config { return twins(m, choose) })
	})
}

// twins are random upstreams for which there is no model.
func twins(m peer.Method, choose machine.Choose) machine.Config {
	c := machine.Config{Method: m}
	c.Limits.SharedNames = true
	if m, ok := m.(hash.Method); ok && m.Consistent {
		c.Limits.MaxPeers, c.Limits.MaxWeight = 20, 3
	}
	if choose("sticky", 0, 1) == 1 {
		c.Method, c.Model.Sticky.Kind = sticky.Over(m), model.StickyRoute
		c.Limits.MostRoutes = 6
	}
	if choose("resolution", 0, 3) == 3 {
		c.Limits.Unit = 100 * time.Millisecond
	}
	c.Options = peer.Options{Resolution: c.Limits.Unit, Policy: machine.RandomPolicy(choose),
		RandomStart: choose("random start", 0, 3) == 3}
	c.Servers = machine.RandomServers(choose, c.Limits)
	return c
}

// allDoors is a method of one's own: some requests are for the whole group, others for the
// least of it, and some for every other peer.
type allDoors struct{}

func (a allDoors) Build(*peer.Set) (peer.Selector, error) {
	return peer.Selector{Pick: a.pick, ComparesConns: true}, nil
}
func (allDoors) Describe() peer.Description { return peer.Description{} }
func (allDoors) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	switch r.Key {
	case "a":
		return g.Least(r, now)
	case "b":
		t := g.Trunk()
		for i := 0; i < g.Len(); i += 2 {
			if g.Eligible(i, r, now) {
				t.Add(i)
			}
		}
		return t.Settle()
	}
	return peer.RoundRobin
}
