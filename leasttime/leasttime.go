// Package leasttime is nginx's least_time: the peer that is expected to answer
// first, in relation to its weight.
package leasttime

import (
	"fmt"

	"github.com/trunklb/trunk/peer"
)

// Mode is the time that counts.
type Mode uint8

// The modes. Header is for http, Connect and FirstByte for stream, LastByte
// for both.
const (
	Header Mode = iota
	LastByte
	Connect
	FirstByte
)

var modeNames = [...]string{"header", "last_byte", "connect", "first_byte"}

// String returns nginx's word for the mode.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Method is least_time MODE [inflight] (docs/parity.md, section 7).
type Method struct {
	// Mode is the time that counts.
	Mode Mode
	// Inflight lets the age of the requests in flight count too, so that a
	// peer that has stopped answering is found out before it answers.
	Inflight bool
}

// New returns least_time with a mode, without inflight.
func New(mode Mode) Method { return Method{Mode: mode} }

// Build implements peer.Method. The error names an unknown mode.
func (m Method) Build(*peer.Set) (peer.Selector, error) {
	if int(m.Mode) >= len(modeNames) {
		return nil, fmt.Errorf("trunk: least_time: Mode is %d: must be Header, LastByte, Connect or FirstByte", m.Mode)
	}
	return &selector{m}, nil
}

// KeyText implements peer.Method: least_time needs no string.
func (Method) KeyText() string { return "" }

// String returns the method's line in an upstream block.
func (m Method) String() string {
	if m.Inflight {
		return "least_time " + m.Mode.String() + " inflight"
	}
	return "least_time " + m.Mode.String()
}

type selector struct{ Method }

// Pick takes the first peer with the smallest eta / weight. If others have the
// same ratio the trunk chooses among them; else no weight moves.
func (s *selector) Pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	if g.Single() {
		return peer.RoundRobin
	}
	if payer := r.Payer(); payer >= 0 {
		return payer
	}
	best, bestETA, tied := peer.None, int64(0), false
	for i := range g.Len() {
		if !g.Eligible(i, r, now) {
			continue
		}
		if s.Inflight {
			observe(g.Times(i), now)
		}
		eta := s.eta(g, i, now)
		var diff int64
		if best >= 0 {
			diff = eta*g.Weight(best) - bestETA*g.Weight(i)
		}
		if best < 0 || diff < 0 {
			best, bestETA, tied = i, eta, false
		} else if diff == 0 {
			tied = true
		}
	}
	if !tied {
		return best
	}
	// nginx holds a peer for tied by the weight of the winner so far and the
	// eta of the first best (quirk Q1): with unequal weights this drops peers
	// that are tied, or admits others.
	t := g.Trunk()
	t.Add(best)
	for i := best + 1; i < g.Len(); i++ {
		if g.Eligible(i, r, now) && s.eta(g, i, now)*g.Weight(t.Best()) == bestETA*g.Weight(i) {
			t.Add(i)
		}
	}
	return t.Settle()
}

// The bounds of a time that is compared, in milliseconds: times are rounded up
// to steps, so that small differences do not decide, and cut off.
const (
	step = 20
	most = 5000
)

// eta is when the peer would be through with one request more.
func (s *selector) eta(g *peer.Group, i int, now peer.Now) int64 {
	t := g.Times(i)
	rt := uint64(*s.average(t))
	// The older what is known of a peer, the less it counts. That the shift
	// begins anew at 64 is what processors do (quirk Q3).
	if since, failTimeout := g.Idle(i, now); since > failTimeout {
		rt >>= uint64(since/(failTimeout+1)) % 64
	}
	if s.Inflight && t.InflightReqs > 0 {
		rt = max(rt, uint64(t.Inflight))
	}
	if rt > most {
		rt = most
	} else {
		rt += step - rt%step
	}
	return int64(rt) * (1 + g.Conns(i))
}

// average is the time of the mode.
func (s *selector) average(t *peer.Times) *int64 {
	switch s.Mode {
	case LastByte:
		return &t.Response
	case Connect:
		return &t.Connect
	default:
		return &t.Header // stream's first byte too
	}
}
