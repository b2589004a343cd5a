package model

// leastTime is least_time (§7).
func (b *Balancer) leastTime(r *Request) *peer {
	if b.single() {
		return b.roundRobin(r)
	}
	if p := b.hinted(r); p != nil {
		return b.takeInFlight(r, p)
	}
	list := b.allEligible(r)
	if len(list) == 0 {
		if b.toBackup(r) {
			return b.leastTime(r)
		}
		return nil
	}
	best, bestETA, tied := b.quickest(list)
	if tied {
		best = b.settle(list, best, bestETA)
	}
	return b.takeInFlight(r, best)
}

// quickest is the first pass: the first peer with the smallest eta / weight,
// and whether others have the same.
func (b *Balancer) quickest(list []*peer) (best *peer, bestETA int64, tied bool) {
	for _, p := range list {
		b.updateInflightTime(p)
		eta := b.eta(p)
		if best == nil {
			best, bestETA = p, eta
			continue
		}
		switch mine, its := uint64(eta)*uint64(best.Weight), uint64(bestETA)*uint64(p.Weight); {
		case mine < its:
			best, bestETA, tied = p, eta, false
		case mine == its:
			tied = true
		}
	}
	return best, bestETA, tied
}

// settle is the second pass: the trunk runs over the tied peers, from the
// first best on. A peer counts as tied by the weight of the winner so far, but
// by the eta of the first best: quirk Q1.
func (b *Balancer) settle(list []*peer, first *peer, bestETA int64) *peer {
	t := round{best: first}
	for _, p := range list {
		if p.id.Index < first.id.Index {
			continue
		}
		if uint64(b.eta(p))*uint64(t.best.Weight) == uint64(bestETA)*uint64(p.Weight) {
			t.add(p)
		}
	}
	t.best.CurrentWeight -= t.total
	return t.best
}

// eta is the time that a request more is expected to take at the peer.
func (b *Balancer) eta(p *peer) int64 {
	rt := uint64(*b.modeTime(p))
	if idle := b.now() - p.Checked; idle > p.FailTimeout {
		rt >>= uint64(idle/(p.FailTimeout+1)) % 64 // quirk Q3
	}
	if p.InflightReqs > 0 {
		rt = max(rt, uint64(p.InflightTime))
	}
	if rt > 5000 {
		rt = 5000
	} else {
		rt += 20 - rt%20
	}
	return int64(rt) * (1 + p.Conns)
}

// modeTime is the average that the mode compares.
func (b *Balancer) modeTime(p *peer) *int64 {
	switch b.config.Time {
	case Connect:
		return &p.ConnectTime
	case Header, FirstByte:
		return &p.HeaderTime
	default:
		return &p.ResponseTime
	}
}

// average moves an average towards v (§7); both are the bits of unsigned numbers. The
// conversions keep a compiler from fusing the multiplications with the addition. A
// sum of 2^64 and more is undefined in C; amd64 makes 0 of it.
func average(avg *int64, v int64) {
	if *avg == 0 {
		*avg = v
		return
	}
	sum := 0.5 + (float64(float64(uint64(v))*0.05) + float64(float64(uint64(*avg))*0.95))
	if sum >= 1<<64 {
		sum = 0
	}
	*avg = int64(uint64(sum))
}

// updateInflightTime averages the age of the requests in flight at the peer.
func (b *Balancer) updateInflightTime(p *peer) {
	if b.config.Inflight && p.InflightReqs > 0 {
		age := p.InflightLast/uint64(p.InflightReqs) + uint64(b.ms-p.InflightChanged)
		average(&p.InflightTime, int64(age))
	}
}

// takeInFlight takes the peer and puts the request in flight.
func (b *Balancer) takeInFlight(r *Request, p *peer) *peer {
	if b.config.Inflight {
		if p.InflightReqs > 0 {
			p.InflightLast += uint64((b.ms - p.InflightChanged) * p.InflightReqs)
		}
		p.InflightChanged = b.ms
		p.InflightReqs++
		r.inFlight = true
	}
	return b.take(r, p)
}

// leaveFlight takes the request out of flight; last is its own time in it.
func (b *Balancer) leaveFlight(r *Request, p *peer, last int64) {
	if !r.inFlight {
		return
	}
	r.inFlight = false
	if p.InflightReqs == 1 {
		p.InflightLast = 0
	} else {
		p.InflightLast += uint64((b.ms-p.InflightChanged)*p.InflightReqs - last)
		p.InflightChanged = b.ms
	}
	p.InflightReqs--
}

// Header reports the response header of the present attempt, ms after its get
// (http). created is the session id in it, for sticky learn. A header whose
// status sends the request to the next peer is not reported at all. The request
// must hold a peer.
func (b *Balancer) Header(r *Request, ms int64, created string) {
	r.firstByteTime = ms
	r.created = created
	b.event(r, Header, ms)
	if b.config.Sticky.AtHeader {
		b.learn(r, r.current)
	}
}

// Connected reports that the present attempt's connection is established, ms
// after its get (stream, §10). The peer is live again at this moment. The
// request must hold a peer.
func (b *Balancer) Connected(r *Request, ms int64) {
	r.connectTime = ms
	clearFails(r.current)
	b.event(r, Connect, ms)
}

// FirstByte reports the first byte of the answer of the present attempt, ms
// after its get (stream, §10). The request must hold a peer.
func (b *Balancer) FirstByte(r *Request, ms int64) {
	r.firstByteTime = ms
	b.event(r, FirstByte, ms)
}

// event takes the request out of flight, and averages its time, at the event
// that least_time compares; without inflight all is left to the free (§7, §10).
func (b *Balancer) event(r *Request, t Time, ms int64) {
	if b.config.Method == LeastTime && b.config.Inflight && b.config.Time == t {
		b.leaveFlight(r, r.current, ms)
		average(b.modeTime(r.current), ms)
	}
}

// freeTimes is what least_time does at a free, before all else (§7, §10).
func (b *Balancer) freeTimes(r *Request, p *peer, o Outcome, responseTime int64) {
	if b.config.Method != LeastTime {
		return
	}
	b.leaveFlight(r, p, responseTime)
	if o != OK || !b.config.Stream && r.firstByteTime < 0 {
		return
	}
	average(&p.ResponseTime, responseTime)
	if r.firstByteTime >= 0 && !b.averagedAtEvent(Header) && !b.averagedAtEvent(FirstByte) {
		average(&p.HeaderTime, r.firstByteTime)
	}
	unknown := r.connectTime < 0 && (!b.config.Stream || p.ConnectTime == 0)
	if !unknown && !b.averagedAtEvent(Connect) {
		average(&p.ConnectTime, r.connectTime) // 2^64-1 where it is not known (quirk Q8)
	}
}

// averagedAtEvent reports whether the free has to leave that time alone.
func (b *Balancer) averagedAtEvent(t Time) bool {
	return b.config.Inflight && b.config.Time == t
}
