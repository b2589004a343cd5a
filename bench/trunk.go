package main

import (
	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

// always and never are values for engine.ScanMost.
const (
	alwaysQueues = 0
	neverQueues  = 1 << 30
)

// newTrunk makes an upstream of trunk with the method, or round robin. scanMost is
// up to how many peers it scans; below 0: as trunk decides itself.
func newTrunk(s scenario, m peer.Method, scanMost int) (*trunkTarget, error) {
	return newTrunkOf(s, s.weights.list(s.n), m, scanMost)
}

func newTrunkOf(s scenario, weights []int, m peer.Method, scanMost int) (*trunkTarget, error) {
	if scanMost >= 0 {
		defer func(usual int) { engine.ScanMost = usual }(engine.ScanMost)
		engine.ScanMost = scanMost
	}
	servers := make([]peer.Server, len(weights))
	for i, w := range weights {
		servers[i] = peer.Server{Addr: addr(i), Weight: w, MaxFails: maxFails, FailTimeout: s.failTimeout()}
	}
	t := &trunkTarget{course: s.course()}
	var err error
	t.up, err = peer.New(servers, m, &peer.Options{Clock: t.clock})
	if err != nil {
		return nil, err
	}
	r := &t.held[0]
	pick := func() int {
		t.pick(0)
		p, _ := t.up.Peer(r)
		return p.Index
	}
	bury(s, pick, func(int, bool) { must(t.up.Free(r, peer.Failed)) })
	return t, nil
}

func trunkRoundRobin(s scenario) (target, error) { return newTrunk(s, nil, -1) }
func trunkScan(s scenario) (target, error)       { return newTrunk(s, nil, neverQueues) }
func trunkQueues(s scenario) (target, error)     { return newTrunk(s, nil, alwaysQueues) }
func trunkLeastConn(s scenario) (target, error)  { return newTrunk(s, leastconn.New(), -1) }

type trunkTarget struct {
	*course
	up   *peer.Upstream
	held [burst]peer.Request
}

func (t *trunkTarget) worker() func(requests int) {
	u, c, r := t.up, t.course, new(peer.Request)
	return func(requests int) {
		for range requests {
			outcome := peer.OK
			if c.fails() {
				outcome = peer.Failed
			}
			must(u.Begin(r))
			must(u.Get(r))
			if c.retry {
				must(u.Free(r, peer.Next))
				must(u.Get(r))
			}
			must(u.Free(r, outcome))
		}
	}
}

func (t *trunkTarget) pick(held int) int {
	r := &t.held[held]
	must(t.up.Begin(r))
	must(t.up.Get(r))
	return held
}

func (t *trunkTarget) done(held, _ int) { must(t.up.Free(&t.held[held], peer.OK)) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}
