package balancertest

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/peer"
)

// LB is an upstream under test. It belongs to the test's goroutine; only
// Upstream and Backends may be shared.
type LB struct {
	*kit
	// fixed is what every request brings; nil: each comes from another client.
	fixed *balancer.Input
}

// kit is what the LBs of one upstream share.
type kit struct {
	t      testing.TB
	up     *balancer.Upstream
	config balancer.Config
	clock  *fakeClock // nil: the time is not the kit's
	// keyed and addressed say that the method wants a key or the client's address.
	keyed, addressed bool

	clients int // how many have come
	held    map[*balancer.Try]bool

	decisions decisions
}

// New makes an upstream of a text with exactly one upstream block. A text that
// nginx would refuse ends the test. The upstream is closed when the test ends;
// a peer that a request still holds then, because an answer's body was not closed,
// is an error.
func New(t testing.TB, block string) *LB {
	t.Helper()
	return NewConfig(t, Config(t, block))
}

// Config reads a text with exactly one upstream block, for NewConfig, so that the
// test may change what no block can say. A text that nginx would refuse ends
// the test.
func Config(t testing.TB, block string) balancer.Config {
	t.Helper()
	parsed, err := nginxconf.Parse(block, nil)
	if err != nil {
		t.Fatalf("balancertest: %v", err)
	}
	if n := len(parsed.Blocks); n != 1 {
		t.Fatalf("balancertest: the text has %d upstream blocks, and exactly one is wanted", n)
	}
	return parsed.Blocks[0].Config
}

// NewConfig makes an upstream of a configuration; one that balancer.New would
// refuse ends the test. Where the configuration says nothing, the name is
// "backend", names are left as they are (balancer.NoLookup), the clock is a fake one that
// starts on 1 January 2026, and the source is seeded, always with the same seed.
//
// With a Clock of its own the time is not the kit's, and Advance sleeps: see Bubble.
func NewConfig(t testing.TB, c balancer.Config) *LB {
	t.Helper()
	k := &kit{t: t, held: map[*balancer.Try]bool{}}
	if c.Name == "" {
		c.Name = "backend"
	}
	if c.Resolver == nil {
		c.Resolver = balancer.NoLookup
	}
	if c.Source == nil {
		c.Source = rand.NewPCG(1, 2)
	}
	if c.Clock == nil {
		k.clock = newFakeClock()
		c.Clock = k.clock.now
	}
	method := peer.Describe(c.Method)
	k.keyed, k.addressed = method.Key != "", method.Client
	if c.Explain.OnDecision == nil {
		c.Explain = balancer.Explain{Share: 1, OnDecision: k.decisions.add}
	}
	up, err := balancer.New(context.Background(), c)
	if err != nil {
		t.Fatalf("balancertest: %v", err)
	}
	k.up, k.config = up, c
	t.Cleanup(k.close)
	return &LB{kit: k}
}

// close ends the upstream, and reports peers that are still held.
func (k *kit) close() {
	for try := range k.held {
		try.Close()
	}
	for _, s := range k.up.Snapshot().Peers {
		if s.Conns > 0 {
			k.t.Errorf("balancertest: %s is still held by %d at the end of the test: was an answer's body not closed?",
				nameOf(s.Server), s.Conns)
		}
	}
	k.up.Close()
}

// Upstream returns the upstream itself, for the code that is to be tested.
func (lb *LB) Upstream() *balancer.Upstream { return lb.up }

// With returns an LB on the same upstream whose requests all bring this input: a
// key for hash, a client for ip_hash, a hint for sticky. Without it, and where a
// field is left empty, every request comes from another client: with another key
// and address, if the method wants one, always the same row of them.
func (lb *LB) With(in balancer.Input) *LB { return &LB{kit: lb.kit, fixed: &in} }

// input makes the next request's input.
func (lb *LB) input() balancer.Input {
	var in balancer.Input
	if lb.fixed != nil {
		in = *lb.fixed
	}
	lb.clients++
	if lb.keyed && in.Key == "" {
		in.Key = "client-" + strconv.Itoa(lb.clients)
	}
	if lb.addressed && !in.Client.IsValid() {
		// A row without order in the first three octets, which ip_hash looks at.
		x := uint32(lb.clients) * 0x9e3779b1
		in.Client = netip.AddrFrom4([4]byte{byte(1 + x>>24%223), byte(x >> 16), byte(x >> 8), 1})
	}
	return in
}

// Advance moves the clock on. With a Config.Clock of the test's own it sleeps.
func (lb *LB) Advance(d time.Duration) {
	lb.t.Helper()
	if lb.clock != nil {
		lb.clock.advance(d)
		return
	}
	before := lb.config.Clock()
	time.Sleep(d)
	if now := lb.config.Clock(); now-before < d {
		lb.t.Fatalf("balancertest: Advance(%v) slept, but Config.Clock went on by %v: it is no clock of a synctest bubble", d, now-before)
	}
}

// Now returns the time on the upstream's clock.
func (lb *LB) Now() time.Time { return time.Unix(0, int64(lb.config.Clock())).UTC() }

// nameOf returns a server's name as the user wrote it.
func nameOf(s balancer.Server) string {
	if s.Name != "" {
		return s.Name
	}
	return s.Addr
}

// known returns a peer's name as the user wrote it; one that no server has ends
// the test.
func (k *kit) known(name string) string {
	k.t.Helper()
	var names []string
	for _, s := range k.up.Snapshot().Peers {
		if name == nameOf(s.Server) || name == s.Server.Addr {
			return nameOf(s.Server)
		}
		names = append(names, nameOf(s.Server))
	}
	k.t.Fatalf("balancertest: no server is named %q; there are %s", name, strings.Join(names, ", "))
	return ""
}
