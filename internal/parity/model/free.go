package model

// Free releases the request's peer (§6). responseTime is in milliseconds since
// the get; -1 when it is not known, as when an attempt is passed on. Free
// reports false, and does nothing, when the request holds no peer.
func (b *Balancer) Free(r *Request, o Outcome, responseTime int64) bool {
	p := r.current
	if p == nil {
		return false
	}
	r.current = nil
	b.freeTimes(r, p, o, responseTime)
	if o == OK && !b.config.Sticky.AtHeader {
		b.learn(r, p)
	}
	if b.single() {
		b.freeSingle(r, p, o)
		return true
	}
	switch o {
	case Failed:
		b.fail(p)
	case OK, Next:
		clearFails(p)
	}
	p.Conns--
	if r.tries > 0 {
		r.tries--
	}
	return true
}

// freeSingle never blames the only peer there is, and never retries (§6).
func (b *Balancer) freeSingle(r *Request, p *peer, o Outcome) {
	if o != Abandoned {
		p.Fails = 0
	}
	p.Conns--
	r.tries = 0
}

// fail counts a failure and takes a part of the effective weight (§6).
func (b *Balancer) fail(p *peer) {
	p.Fails++
	p.Accessed = b.now()
	p.Checked = b.now()
	if p.MaxFails > 0 {
		p.EffectiveWeight = max(0, p.EffectiveWeight-int64(p.Weight/p.MaxFails))
	}
}

// clearFails forgets the failures if the peer was taken more than a
// fail_timeout after the last of them, or the last check (§6).
func clearFails(p *peer) {
	if p.Accessed < p.Checked {
		p.Fails = 0
	}
}
