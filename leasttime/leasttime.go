// Package leasttime is nginx's least_time: the peer that is expected to answer
// first, in relation to its weight.
package leasttime

import (
	"fmt"
	"math"
	"slices"

	"github.com/trunklb/trunk/internal/fields"
	"github.com/trunklb/trunk/internal/pick"
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

// ParseMode returns the mode that nginx has the word for, such as "last_byte"; false if
// there is none.
func ParseMode(word string) (m Mode, ok bool) {
	i := slices.Index(modeNames[:], word)
	return Mode(max(i, 0)), i >= 0
}

// Method is least_time MODE [inflight] (docs/parity.md, section 7).
type Method struct {
	// Mode is the time that counts.
	Mode Mode
	// Inflight lets the age of the requests in flight count too, so that a
	// peer that has stopped answering is found out before it answers.
	Inflight bool

	// TrueTies lets the trunk choose among all peers that are tied for the
	// smallest eta / weight, and no others. nginx tests each one by the weight
	// of the winner so far and the eta of the first (quirk Q1), and with unequal
	// weights drops peers that are tied, or admits others: three of weights 1, 2
	// and 3 that stay tied get 10, 40 and 10 of 60 requests. With TrueTies they
	// get 10, 20 and 30. It costs nothing.
	TrueTies bool
	// FullDecay lets what is known of a peer count for less the longer the peer
	// is idle, without end: its time is halved for each fail timeout and second.
	// In nginx this starts again after 64 halvings (quirk Q3), 704 s at the default
	// timeout: a slow peer is then as slow as ever, although no request has asked
	// it. With FullDecay such a peer counts as fast as any can, 20 ms, and so
	// gets its chance as soon as the others' times for their weight are not
	// smaller than that. It costs nothing.
	FullDecay bool
	// FairStart lets a peer whose time is not known count as the mean of the known
	// ones, of the available peers. nginx takes it for the fastest there is
	// (20 ms): beside three peers that take 100 ms a new one gets 28 of 40
	// requests at one time, and one that fails before it answers goes on
	// getting them all if max_fails does not take it out. With FairStart it gets
	// 10. The mean ages as a time does, so that a peer that was never asked, or
	// not for long, is asked soon. Where nothing is known all are equal, as in
	// nginx. A time of 0 ms, which nginx cannot distinguish from none, is kept as 1 ms,
	// which is compared as 0 is. It costs another look at every peer per pick.
	FairStart bool
}

// New returns least_time with a mode, without inflight.
func New(mode Mode) Method { return Method{Mode: mode} }

// Build implements peer.Method. The error is a *peer.ConfigError that names an
// unknown mode.
func (m Method) Build(set *peer.Set) (peer.Selector, error) {
	if int(m.Mode) >= len(modeNames) {
		return peer.Selector{}, &peer.ConfigError{Server: -1, Field: "leasttime.Method.Mode", Value: uint8(m.Mode),
			Reason: "must be Header, LastByte, Connect or FirstByte"}
	}
	s := &selector{Method: m, halvings: 63}
	if m.FullDecay {
		s.halvings = unbounded
	}
	selector := peer.Selector{Pick: s.pick, Explain: s.explain,
		Load: s.load, LoadRule: peer.LeastTime, TiesByWinner: !m.TrueTies,
		Taken: s.taken, Connected: s.connected, FirstByte: s.firstByte, Header: s.header, Freed: s.freed}
	if !m.Inflight && !m.FairStart {
		selector.LoadUntil = s.until
	}
	return selector, nil
}

// Describe implements peer.Method.
func (m Method) Describe() peer.Description {
	d := peer.Description{Directive: []string{"least_time", m.Mode.String()}, Remedies: fields.Set(m, "Mode Inflight")}
	if m.Inflight {
		d.Directive = append(d.Directive, "inflight")
	}
	switch m.Mode {
	case Connect, FirstByte:
		d.NotHTTP = "HTTP has the modes header and last_byte"
	case Header:
		d.NotStream = "connections have the modes connect, first_byte and last_byte"
	}
	return d
}

// String returns the method's line in an upstream block.
func (m Method) String() string { return peer.Describe(m).Name }

type selector struct {
	Method
	halvings uint64 // how many count at most, less one
	mean     uint64 // what an unknown time counts for in the present pick
}

// pick takes the first peer with the smallest eta / weight. If others have the
// same ratio the trunk chooses among them; else no weight moves.
func (s *selector) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	if i, ok := pick.Preset(r, g.Single()); ok {
		return i
	}
	s.setMean(g, r, now)
	return g.Least(r, now)
}

// The bounds of a time that is compared, in milliseconds: times are rounded up
// to steps, so that small differences do not decide, and cut off.
const (
	step    = 20
	ceiling = 5000
)

// setMean finds what an unknown time counts for with FairStart: the mean of the known
// averages of the peers that are available to the request, each cut off as it is when
// compared. Otherwise it is nothing, as in nginx.
func (s *selector) setMean(g *peer.Group, r *peer.Request, now peer.Now) {
	if !s.FairStart {
		return
	}
	sum, known := uint64(0), uint64(0)
	for _, i := range g.Candidates(r, now) {
		if avg := uint64(*s.average(g.Times(i))); avg != 0 {
			sum += min(avg, ceiling)
			known++
		}
	}
	s.mean = sum / max(known, 1)
}

// load is eta. With inflight each look at a peer moves the average age of what it has in
// flight.
func (s *selector) load(g *peer.Group, i int, now peer.Now) int64 {
	if s.Inflight {
		observe(g.Times(i), now)
	}
	return s.eta(g, i, now)
}

// until is the tick of the next halving.
func (s *selector) until(g *peer.Group, i int, now peer.Now) int64 {
	if *s.average(g.Times(i)) == 0 {
		return peer.NoTick
	}
	since, failTimeout := g.Idle(i, now)
	return now.Tick - since + (max(since, 0)/(failTimeout+1)+1)*(failTimeout+1)
}

// known returns the average time of a peer, or the mean where it is not known, and how
// many halvings count at most, less one. That nginx's begin again at 64 is what
// processors do (quirk Q3).
func (s *selector) known(t *peer.Times) (rt, halvings uint64) {
	if rt = uint64(*s.average(t)); rt == 0 {
		// A peer that was never asked is idle since 1970, and must be asked.
		return s.mean, unbounded
	}
	return rt, s.halvings
}

// unbounded are halvings without end.
const unbounded = math.MaxUint64

// eta is when peer i is expected to complete one request more, if by itself one takes its
// average time, which counts for less the longer the peer has been idle.
func (s *selector) eta(g *peer.Group, i int, now peer.Now) int64 {
	t := g.Times(i)
	rt, halvings := s.known(t)
	if since, failTimeout := g.Idle(i, now); since > failTimeout {
		rt >>= uint64(since/(failTimeout+1)) & halvings
	}
	if s.Inflight && t.InflightReqs > 0 {
		rt = max(rt, uint64(t.Inflight))
	}
	if rt > ceiling {
		rt = ceiling
	} else {
		rt += step - rt%step
	}
	return int64(rt) * (1 + g.Conns(i))
}

// explain shows the eta of a peer.
func (s *selector) explain(g *peer.Group, r *peer.Request, i int, now peer.Now) string {
	s.setMean(g, r, now)
	return fmt.Sprintf("eta %d ms", s.eta(g, i, now))
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
