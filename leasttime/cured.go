package leasttime

import (
	"fmt"

	"github.com/trunklb/trunk/peer"
)

// cured is least_time with TrueTies, FullDecay or FairStart: a selector of its
// own, so that nginx's way stands by itself.
type cured struct{ selector }

// Pick is selector's but for the cures.
func (s *cured) Pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	if g.Single() {
		return peer.RoundRobin
	}
	if payer := r.Payer(); payer >= 0 {
		return payer
	}
	candidates := g.Candidates(r, now)
	etas, mean := s.etas[:len(candidates)], s.mean(g, candidates)
	for k, i := range candidates {
		if s.Inflight {
			observe(g.Times(i), now)
		}
		etas[k] = s.eta(g, i, mean, now)
	}
	best, tied := least(g, candidates, etas)
	if best < 0 {
		return peer.None
	}
	if !tied {
		r.Scratch.Rule = peer.LeastTime
		return candidates[best]
	}
	r.Scratch.Rule = peer.TieByTrunk
	t := g.Trunk()
	t.Add(candidates[best])
	for k := best + 1; k < len(candidates); k++ {
		i, rival := candidates[k], candidates[best]
		if !s.TrueTies {
			rival = t.Best()
		}
		if etas[k]*g.Weight(rival) == etas[best]*g.Weight(i) {
			t.Add(i)
		}
	}
	return t.Settle()
}

// mean is what an unknown time counts for: the mean of the known averages of the
// peers that the request may have, each cut off as it is when compared; nothing
// without FairStart, as in nginx.
func (s *cured) mean(g *peer.Group, candidates []int) uint64 {
	if !s.FairStart {
		return 0
	}
	sum, known := int64(0), int64(0)
	for _, i := range candidates {
		if avg := *s.average(g.Times(i)); avg != 0 {
			sum += min(avg, most)
			known++
		}
	}
	return uint64(sum / max(known, 1))
}

// eta is selector's, with the mean for what is not known.
func (s *cured) eta(g *peer.Group, i int, mean uint64, now peer.Now) int64 {
	rt, fully := uint64(*s.average(g.Times(i))), s.FullDecay
	if rt == 0 {
		// A peer that was never asked is idle since 1970, and must be asked.
		rt, fully = mean, true
	}
	if since, failTimeout := g.Idle(i, now); since > failTimeout {
		halvings := uint64(since / (failTimeout + 1))
		if !fully {
			halvings %= 64
		}
		rt >>= halvings
	}
	return s.through(g, i, g.Times(i), rt)
}

// Explain implements peer.Explainer.
func (s *cured) Explain(g *peer.Group, r *peer.Request, i int, now peer.Now) string {
	return fmt.Sprintf("eta %d ms", s.eta(g, i, s.mean(g, g.Candidates(r, now)), now))
}

// Freed is selector's, and keeps a time of 0 ms apart from none.
func (s *cured) Freed(g *peer.Group, r *peer.Request, i int, o peer.Outcome, now peer.Now) {
	s.selector.Freed(g, r, i, o, now)
	if avg := s.selector.average(g.Times(i)); s.FairStart && *avg == 0 && o == peer.OK && s.measured(r) {
		*avg = 1
	}
}

// measured reports whether a request that went well had the mode's time.
func (s *cured) measured(r *peer.Request) bool {
	m := &r.Scratch
	switch s.Mode {
	case Connect:
		return m.Connect != peer.Unknown
	case FirstByte:
		return m.FirstByte != peer.Unknown
	case Header:
		return m.Header != peer.Unknown
	default:
		return r.Stream || m.Header != peer.Unknown
	}
}
