//go:build !nocaddy

package main

import (
	"math"

	caddy "github.com/caddyserver/caddy/v2"
	proxy "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// caddy's policies are exported; its counting of requests and failures is the
// work of its handler, and not within reach of a program. So its peers here
// hold nothing and are always well, which is the cheapest case for it.
var caddys = []contender{
	{"caddy round_robin", "weights; the counting of requests and failures is not in the figure", caddyRoundRobin, false, false, math.MaxInt},
	{"caddy weighted_round_robin", "the counting of requests and failures is not in the figure; not smooth", caddyWeighted, true, false, math.MaxInt},
	{"caddy least_conn", "weights; the counting of requests and failures is not in the figure", caddyLeastConn, false, false, math.MaxInt},
	{"caddy random_choose", "weights; the counting of requests and failures is not in the figure; random", caddyRandomChoose, false, false, math.MaxInt},
}

func caddyRoundRobin(s scenario) (target, error) {
	return newCaddy(s, &proxy.RoundRobinSelection{}), nil
}

func caddyWeighted(s scenario) (target, error) {
	p := &proxy.WeightedRoundRobinSelection{Weights: s.weights.list(s.n)}
	return newCaddy(s, p), p.Provision(caddy.Context{})
}

func caddyLeastConn(s scenario) (target, error) { return newCaddy(s, proxy.LeastConnSelection{}), nil }

func caddyRandomChoose(s scenario) (target, error) {
	return newCaddy(s, proxy.RandomChoiceSelection{Choose: 2}), nil
}

func newCaddy(s scenario, policy proxy.Selector) target {
	t := &caddyTarget{policy: policy}
	for i := range s.n {
		t.pool = append(t.pool, &proxy.Upstream{Host: new(proxy.Host), Dial: addr(i)})
	}
	return t
}

type caddyTarget struct {
	policy proxy.Selector
	pool   proxy.UpstreamPool
}

func (t *caddyTarget) worker() func(requests int) {
	return func(requests int) {
		for range requests {
			t.pick(0)
		}
	}
}

func (t *caddyTarget) pick(held int) int {
	if t.policy.Select(t.pool, nil, nil) == nil {
		panic("caddy has selected no upstream")
	}
	return held
}

func (t *caddyTarget) done(int, int) {}
