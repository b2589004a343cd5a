package model

// roundRobin is round robin's get (§5, with a hint §9). Every other method
// falls back into it.
func (b *Balancer) roundRobin(r *Request) *peer {
	if b.single() {
		return b.takeSingle(r)
	}
	if p := b.hinted(r); p != nil {
		b.charge(r, p)
		return b.take(r, p)
	}
	if p := trunk(b.allEligible(r)); p != nil {
		return b.take(r, p)
	}
	if b.toBackup(r) {
		return b.roundRobin(r)
	}
	return nil
}

// takeSingle takes the only peer there is: nothing but down and max_conns
// refuses it, a hint overcomes draining, and nothing but conns changes (§5). It
// is not even marked as tried, nor checked, and there is no round to pay for.
func (b *Balancer) takeSingle(r *Request) *peer {
	p := b.groups[0].peers[0]
	if p.Down || p.Drain && b.hinted(r) == nil {
		return nil
	}
	if p.MaxConns > 0 && p.Conns >= int64(p.MaxConns) {
		return nil
	}
	p.Conns++
	r.current = p
	return p
}

// charge makes the hinted peer pay for a round that it did not need to win,
// unless it is in debt so deep that the valve skips the round (§9).
func (b *Balancer) charge(r *Request, payer *peer) {
	if payer.CurrentWeight <= -(b.groups[r.group].totalWeight - int64(payer.Weight)) {
		return
	}
	var t round
	for _, p := range b.allEligible(r) {
		t.add(p)
	}
	payer.CurrentWeight -= t.total
}
