package main

import (
	"encoding/json"
	"fmt"

	orca "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin"
	_ "google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// grpc's pickers are not exported, but its balancers are, by name. Here they are
// given a ClientConn whose connections are all ready at once, and the
// picker that they give to it is what is measured.
type grpcTarget struct {
	balancer.ClientConn
	picker balancer.Picker
	conns  []*readyConn
	index  map[balancer.SubConn]int
	info   balancer.PickInfo
	held   [burst]balancer.PickResult
	all    int
}

// grpcWeightedConfig keeps the reports' weights for the whole run: nothing is
// recomputed in the background.
const grpcWeightedConfig = `{"blackoutPeriod": "0s", "weightExpirationPeriod": "3600s", "weightUpdatePeriod": "3600s"}`

func grpcRoundRobin(s scenario) (target, error) {
	t, _, err := newGRPC("round_robin", "", s.n)
	return t, err
}

func grpcWeighted(s scenario) (target, error) {
	t, update, err := newGRPC("weighted_round_robin", grpcWeightedConfig, s.n)
	if err != nil {
		return nil, err
	}
	// Each peer reports once. Without weights yet, the picker goes round.
	weights := s.weights.list(s.n)
	for range s.n {
		r, err := t.picker.Pick(t.info)
		if err != nil {
			return nil, err
		}
		w := weights[t.index[r.SubConn]]
		r.Done(balancer.DoneInfo{ServerLoad: &orca.OrcaLoadReport{ApplicationUtilization: 1, RpsFractional: float64(w)}})
	}
	return t, update() // makes the picker with the weights
}

func newGRPC(name, config string, n int) (t *grpcTarget, update func() error, err error) {
	t = &grpcTarget{index: map[balancer.SubConn]int{}, all: n}
	builder := balancer.Get(name)
	state := balancer.ClientConnState{}
	if config != "" {
		var cfg serviceconfig.LoadBalancingConfig
		if cfg, err = builder.(balancer.ConfigParser).ParseConfig(json.RawMessage(config)); err != nil {
			return nil, nil, err
		}
		state.BalancerConfig = cfg
	}
	for i := range n {
		state.ResolverState.Endpoints = append(state.ResolverState.Endpoints,
			resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr(i)}}})
	}
	b := builder.Build(t, balancer.BuildOptions{})
	update = func() error { return b.UpdateClientConnState(state) }
	if err = update(); err != nil {
		return nil, nil, err
	}
	t.conns[n-1].ready()
	if got := len(t.conns); got != n {
		return nil, nil, fmt.Errorf("%s has made %d connections of %d", name, got, n)
	}
	return t, update, nil
}

// NewSubConn makes a connection.
func (t *grpcTarget) NewSubConn(a []resolver.Address, o balancer.NewSubConnOptions) (balancer.SubConn, error) {
	c := &readyConn{target: t, listener: o.StateListener}
	t.conns = append(t.conns, c)
	var err error
	t.index[c], err = peerOf(a[0].Addr)
	return c, err
}

// UpdateState takes the new picker.
func (t *grpcTarget) UpdateState(s balancer.State) { t.picker = s.Picker }

// MetricsRecorder takes no metrics.
func (t *grpcTarget) MetricsRecorder() estats.MetricsRecorder {
	return estats.UnimplementedMetricsRecorder{}
}

// readyConn is a connection that is ready when it is asked to be. All but the
// last become so together, in the last one's Connect: the balancer then
// makes one picker, and not one for each.
type readyConn struct {
	balancer.SubConn
	target   *grpcTarget
	listener func(balancer.SubConnState)
	health   func(balancer.SubConnState)
}

// Connect implements balancer.SubConn.
func (c *readyConn) Connect() {
	if t := c.target; len(t.conns) == t.all {
		for _, other := range t.conns[:t.all-1] {
			other.ready()
		}
	}
}

func (c *readyConn) ready() {
	c.listener(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
	c.listener(balancer.SubConnState{ConnectivityState: connectivity.Ready})
	if c.health != nil {
		c.health(balancer.SubConnState{ConnectivityState: connectivity.Ready})
	}
}

// RegisterHealthListener implements balancer.SubConn.
func (c *readyConn) RegisterHealthListener(f func(balancer.SubConnState)) { c.health = f }

// Shutdown implements balancer.SubConn.
func (c *readyConn) Shutdown() {}

func (t *grpcTarget) worker() func(requests int) {
	return func(requests int) {
		for range requests {
			r, err := t.picker.Pick(t.info)
			must(err)
			if r.Done != nil {
				r.Done(balancer.DoneInfo{})
			}
		}
	}
}

func (t *grpcTarget) pick(held int) int {
	var err error
	t.held[held], err = t.picker.Pick(t.info)
	must(err)
	return held
}

func (t *grpcTarget) done(held, _ int) {
	if r := &t.held[held]; r.Done != nil {
		r.Done(balancer.DoneInfo{})
	}
}
