package leasttime

import (
	"github.com/trunklb/trunk/internal/scratch"
	"github.com/trunklb/trunk/peer"
)

// average moves avg towards v by a twentieth. Both are the bits of unsigned numbers,
// as in nginx. The conversions keep the compiler from fusing a product and the sum
// into one instruction, which would round once instead of twice and differ from nginx on
// some processors.
func average(avg, v int64) int64 {
	if avg == 0 {
		return v
	}
	sum := 0.5 + float64(float64(float64(uint64(v))*0.05)+float64(float64(uint64(avg))*0.95))
	if sum >= 1<<64 {
		return 0 // undefined in C; what amd64 makes of it
	}
	return int64(uint64(sum))
}

// taken counts the request in flight.
func (s *selector) taken(g *peer.Group, r *peer.Request, i int, now peer.Now) {
	if !s.Inflight || g.Single() {
		return
	}
	t := g.Times(i)
	if t.InflightReqs > 0 {
		t.InflightLast += uint64((now.Milli - t.InflightChanged) * t.InflightReqs)
	}
	t.InflightChanged = now.Milli
	t.InflightReqs++
	r.Scratch.InFlight = true
}

// observe averages the age of the requests in flight.
func observe(t *peer.Times, now peer.Now) {
	if t.InflightReqs > 0 {
		age := t.InflightLast/uint64(t.InflightReqs) + uint64(now.Milli-t.InflightChanged)
		t.Inflight = average(t.Inflight, int64(age))
	}
}

// leave takes the request out of flight; last is its age, unknown: -1, which
// makes the sum grow by one (quirk Q2).
func leave(t *peer.Times, r *peer.Request, last int64, now peer.Now) {
	if !r.Scratch.InFlight {
		return
	}
	r.Scratch.InFlight = false
	if t.InflightReqs == 1 {
		t.InflightLast = 0
	} else {
		t.InflightLast += uint64((now.Milli-t.InflightChanged)*t.InflightReqs - last)
		t.InflightChanged = now.Milli
	}
	t.InflightReqs--
}

// connected, firstByte and header note the time of the event. With inflight it
// is averaged at once where it is the mode's; without, at the free.

func (s *selector) connected(g *peer.Group, r *peer.Request, i int, now peer.Now) {
	r.Scratch.Connect = s.event(Connect, g, r, i, now)
}

func (s *selector) firstByte(g *peer.Group, r *peer.Request, i int, now peer.Now) {
	r.Scratch.FirstByte = s.event(FirstByte, g, r, i, now)
}

func (s *selector) header(g *peer.Group, r *peer.Request, i int, now peer.Now) {
	r.Scratch.Header = s.event(Header, g, r, i, now)
}

func (s *selector) event(what Mode, g *peer.Group, r *peer.Request, i int, now peer.Now) int64 {
	age := now.Milli - r.Scratch.Start
	if s.Inflight && s.Mode == what {
		t := g.Times(i)
		leave(t, r, age, now)
		avg := s.average(t)
		*avg = average(*avg, age)
	}
	return age
}

// freed averages the times of a request that went well, and takes it out of
// flight if it still is.
func (s *selector) freed(g *peer.Group, r *peer.Request, i int, o peer.Outcome, now peer.Now) {
	t, m := g.Times(i), &r.Scratch
	// A failed attempt that is passed on has no age yet (quirk Q2). Abandoned
	// is not nginx's and need not inherit that.
	response := int64(scratch.Unknown)
	if o == peer.OK || o == peer.Abandoned || r.Stream && m.Connect != scratch.Unknown {
		response = now.Milli - m.Start
	}
	leave(t, r, response, now)
	if o != peer.OK {
		return
	}
	if r.Stream {
		t.Response = average(t.Response, response)
		if m.Connect != scratch.Unknown || t.Connect != 0 {
			// An unknown time moves a known average, as 2^64-1 (quirk Q8).
			s.atFree(Connect, &t.Connect, m.Connect)
		}
		if m.FirstByte != scratch.Unknown {
			s.atFree(FirstByte, &t.Header, m.FirstByte)
		}
	} else if m.Header != scratch.Unknown {
		t.Response = average(t.Response, response)
		s.atFree(Header, &t.Header, m.Header)
	}
	if avg := s.average(t); s.FairStart && *avg == 0 && s.measured(r) {
		*avg = 1 // a time of 0 ms, apart from none
	}
}

// measured reports whether a request that went well had the mode's time.
func (s *selector) measured(r *peer.Request) bool {
	m := &r.Scratch
	switch s.Mode {
	case Connect:
		return m.Connect != scratch.Unknown
	case FirstByte:
		return m.FirstByte != scratch.Unknown
	case Header:
		return m.Header != scratch.Unknown
	default:
		return r.Stream || m.Header != scratch.Unknown
	}
}

// atFree averages a time that was not averaged at its event.
func (s *selector) atFree(what Mode, avg *int64, age int64) {
	if !(s.Inflight && s.Mode == what) {
		*avg = average(*avg, age)
	}
}
