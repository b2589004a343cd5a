package main

import (
	"math"
	"slices"
)

// target is one contender set up for one scenario.
type target interface {
	// worker returns a loop of that many requests, each of them a pick and a
	// done. Each goroutine has its own.
	worker() func(requests int)
	// pick picks a peer for one of burst requests; done gives it back.
	pick(held int) int
	done(held, peer int)
}

// burst is how many peers are held at once where picks alone are measured.
const burst = 256

// contender is a balancer that a Go program may use.
type contender struct {
	name  string
	lacks string // what it does not do that plain and trunk do
	build func(scenario) (target, error)
	// weighted: it knows weights. failures: it has an account of failures, so
	// that the scenarios with failures mean something to it.
	weighted, failures bool
	most               int // peers; more would take it minutes
}

// contenders are all of them; the first is what the others are compared with.
var contenders = slices.Concat([]contender{
	{"plain loop", "retries, backups, sticky, change of the set", newPlain, true, true, math.MaxInt},
	{"trunk round robin", "", trunkRoundRobin, true, true, math.MaxInt},
	{"trunk, always scan", "", trunkScan, true, true, math.MaxInt},
	{"trunk, always queues", "", trunkQueues, true, true, math.MaxInt},
	{"trunk least_conn", "", trunkLeastConn, true, true, math.MaxInt},
	{"grpc round_robin", "weights, failures of requests (it drops broken connections), max_conns, retries",
		grpcRoundRobin, false, false, math.MaxInt},
	{"grpc weighted_round_robin", "failures of requests, max_conns, retries; weights only from the servers' load reports; not smooth",
		grpcWeighted, true, false, math.MaxInt},
	{"kratos wrr", "failures, max_conns, retries", kratosWRR, true, false, 1000},
	{"kratos p2c", "configured weights, max_conns, retries; random; measures latency instead",
		kratosP2C, false, true, math.MaxInt},
}, clangs, caddys)

func (c *contender) takesPart(s scenario) bool {
	return s.n <= c.most && (c.weighted || s.weights == equal) && (c.failures || s.health == healthy)
}
