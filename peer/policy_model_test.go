package peer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/peer"
)

// policyModel is round robin under a Policy, written down literally: each remedy is one
// place in pick or free. Its peers are all primary, and two or more.
type policyModel struct {
	peer.Policy
	now   time.Duration
	peers []*policyPeer
}

type policyPeer struct {
	addr             string
	weight, maxFails int64
	failTimeout      int64 // seconds
	down             bool

	cw, ew            float64 // in units of a thousandth of weight 1, without fractions
	fails             int64
	out               bool
	accessed, checked int64 // seconds
	failures          []time.Duration
	ramp              *policyRamp // nil: ew comes back by picks, as in nginx
}

// policyRamp is the way of ew back to the whole weight, by time.
type policyRamp struct {
	from  float64
	since time.Duration
	takes time.Duration
}

// unit is what the model counts for a weight of 1. (The product counts 1 where no remedy has need
// of less: the picks are the same.)
const unit = 1000

func (p *policyPeer) whole() float64 { return float64(p.weight * unit) }

func (r *policyRamp) at(now time.Duration, whole float64) float64 {
	share := float64((now - r.since).Milliseconds()) / float64(r.takes.Milliseconds())
	return r.from + float64((whole-r.from)*min(max(share, 0), 1))
}

func (m *policyModel) seconds() int64 { return int64(m.now / time.Second) }

// pick is one get of a request that has tried some peers; nil: no live peers.
func (m *policyModel) pick(tried map[*policyPeer]bool) *policyPeer {
	for _, p := range m.peers { // Recovery and SlowStart: by time
		switch {
		case p.ramp == nil:
		case m.now.Milliseconds()-p.ramp.since.Milliseconds() >= p.ramp.takes.Milliseconds():
			p.ew, p.ramp = p.whole(), nil
		default:
			p.ew = float64(int64(p.ramp.at(m.now, p.whole())))
		}
	}
	var best *policyPeer
	total := 0.0
	for _, p := range m.peers {
		if tried[p] || p.down || p.out && m.seconds()-p.checked <= p.failTimeout {
			continue
		}
		p.cw += p.ew
		total += p.ew
		if p.ramp == nil {
			p.ew = min(p.ew+unit, p.whole())
		}
		if best == nil || p.cw > best.cw {
			best = p
		}
	}
	if best != nil {
		best.cw -= total
	} else if m.LeastBad { // the one that has been out for longest
		for _, p := range m.peers {
			if p.out && !p.down && !tried[p] && (best == nil || p.checked < best.checked) {
				best = p
			}
		}
	}
	if best != nil && m.seconds()-best.checked > best.failTimeout {
		best.checked = m.seconds()
	}
	return best
}

// fail frees a peer FAILED.
func (m *policyModel) fail(p *policyPeer) {
	p.fails++
	if m.Window > 0 && p.maxFails > 0 { // only those of the last time count, and at most max_fails of them
		p.failures = append(p.failures, m.now)
		p.failures = p.failures[max(0, len(p.failures)-int(p.maxFails)):]
		p.fails = 0
		for _, at := range p.failures {
			if m.now-at < m.Window {
				p.fails++
			}
		}
	}
	if p.maxFails > 0 && p.fails >= p.maxFails && !(m.KeepLast && m.isLast(p)) {
		p.out = true
	}
	p.accessed, p.checked = m.seconds(), m.seconds()

	penalty := 0.0
	switch {
	case m.Penalty > 0:
		penalty = float64(max(1, int64(m.Penalty*float64(p.weight)))) * unit
	case p.maxFails > 0:
		penalty = float64(p.weight/p.maxFails) * unit
	}
	from, takes := p.ew, m.Recovery
	if p.ramp != nil {
		from = p.ramp.at(m.now, p.whole())
		if takes == 0 {
			takes = p.ramp.takes
		}
	}
	switch {
	case penalty == 0:
	case takes > 0:
		p.ramp = &policyRamp{from: max(0, from-penalty), since: m.now, takes: takes}
		p.ew = float64(int64(p.ramp.from))
	default:
		p.ew = max(0, p.ew-penalty)
	}
}

func (m *policyModel) isLast(p *policyPeer) bool {
	for _, other := range m.peers {
		if other != p && !other.out && !other.down {
			return false
		}
	}
	return true
}

// succeed frees a peer OK.
func (m *policyModel) succeed(p *policyPeer) {
	if p.accessed >= p.checked || m.Window > 0 && !p.out {
		return
	}
	p.fails = 0
	if !p.out {
		return
	}
	p.out, p.failures = false, nil
	if m.Forgive {
		for _, each := range m.peers {
			each.cw = 0
		}
	}
	if m.SlowStart > 0 {
		p.ramp = &policyRamp{from: p.whole() / 100, since: m.now, takes: m.SlowStart}
		p.ew = float64(int64(p.ramp.from))
	}
}

// Under any policy every pick, and what each peer has failed, is that of the model, on both
// engines.
func TestPolicyAgreesWithTheModel(t *testing.T) {
	scanMost := engine.ScanMost
	t.Cleanup(func() { engine.ScanMost = scanMost })
	rapid.Check(t, func(t *rapid.T) {
		engine.ScanMost = rapid.SampledFrom([]int{0, 1000}).Draw(t, "scan most")
		span := func(name string) time.Duration {
			return time.Duration(rapid.SampledFrom([]int{0, 0, 700, 5_000, 60_000}).Draw(t, name)) * time.Millisecond
		}
		m := &policyModel{Policy: peer.Policy{
			Penalty: rapid.SampledFrom([]float64{0, 0, 0.1, 0.5, 1}).Draw(t, "penalty"), Recovery: span("recovery"), Window: span("window"),
			KeepLast: rapid.Bool().Draw(t, "keep last"), LeastBad: rapid.Bool().Draw(t, "least bad"),
			Forgive: rapid.Bool().Draw(t, "forgive"), SlowStart: span("slow start"),
		}}
		var servers []peer.Server
		for i := range rapid.SampledFrom([]int{2, 2, 3, 3, 4, 6}).Draw(t, "peers") {
			s := peer.Server{Addr: string(rune('a' + i)), Weight: rapid.IntRange(1, 9).Draw(t, "weight"),
				MaxFails:    rapid.SampledFrom([]int{1, 1, 2, 3, peer.NoMaxFails}).Draw(t, "max fails"),
				FailTimeout: time.Duration(rapid.IntRange(1, 10).Draw(t, "fail timeout")) * time.Second, Down: i > 1 && rapid.IntRange(0, 5).Draw(t, "down") == 0}
			servers = append(servers, s)
			p := &policyPeer{addr: s.Addr, weight: int64(s.Weight), maxFails: max(0, int64(s.MaxFails)), failTimeout: int64(s.FailTimeout / time.Second), down: s.Down}
			p.ew = p.whole()
			m.peers = append(m.peers, p)
		}
		u := newUpdatable(t, nil, peer.Options{Policy: m.Policy}, servers...)
		type flight struct {
			r     *peer.Request
			p     *policyPeer
			tried map[*policyPeer]bool
		}
		var held []*flight
		for range rapid.IntRange(1, 250).Draw(t, "steps") {
			u.now += time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 300, 700, 2_000, 5_000, 11_000}).Draw(t, "ms")) * time.Millisecond
			m.now = u.now
			f := &flight{r: u.begin(), tried: map[*policyPeer]bool{}}
			if n := len(held); n > 0 && rapid.IntRange(0, 2).Draw(t, "end one") > 0 {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				f, held = held[i], append(held[:i:i], held[i+1:]...)
				switch outcome := rapid.SampledFrom([]peer.Outcome{peer.OK, peer.OK, peer.Failed, peer.Failed, peer.Abandoned}).Draw(t, "outcome"); outcome {
				case peer.Failed:
					require.NoError(t, u.Free(f.r, outcome))
					m.fail(f.p)
				default:
					require.NoError(t, u.Free(f.r, outcome))
					if outcome == peer.OK {
						m.succeed(f.p)
					}
					f = nil
				}
			}
			if f != nil && (f.p == nil || f.r.Tries() > 0) { // a new request, or the next try of one that has failed
				want := ""
				if f.p = m.pick(f.tried); f.p != nil {
					want = f.p.addr
					f.tried[f.p] = true
					held = append(held, f)
				}
				require.Equal(t, want, u.get(f.r))
			}
			for i, p := range u.Snapshot().Peers {
				require.Equal(t, m.peers[i].fails, p.Fails, p.Server.Addr)
				require.Equal(t, m.peers[i].out, p.Out, p.Server.Addr)
			}
		}
	})
}
