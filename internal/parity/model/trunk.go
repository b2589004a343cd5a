package model

// eligible is §2: may the request have this peer now?
func (b *Balancer) eligible(r *Request, p *peer) bool {
	return !p.Drain && b.eligibleDraining(r, p)
}

// eligibleDraining is §2 as a sticky hint has it: draining is not down (§9).
func (b *Balancer) eligibleDraining(r *Request, p *peer) bool {
	switch {
	case r.tried[p]:
		return false
	case p.Down:
		return false
	case p.MaxFails > 0 && p.Fails >= int64(p.MaxFails) && b.now()-p.Checked <= p.FailTimeout:
		return false
	case p.MaxConns > 0 && p.Conns >= int64(p.MaxConns):
		return false
	}
	return true
}

// allEligible lists the eligible peers of the request's group, in list order.
func (b *Balancer) allEligible(r *Request) []*peer {
	var list []*peer
	for _, p := range b.groups[r.group].peers {
		if b.eligible(r, p) {
			list = append(list, p)
		}
	}
	return list
}

// round is one pass of the trunk (§3): peers are added in list order, and at
// the end one peer pays the total.
type round struct {
	best  *peer
	total int64
}

func (t *round) add(p *peer) {
	p.CurrentWeight += p.EffectiveWeight
	t.total += p.EffectiveWeight
	if p.EffectiveWeight < int64(p.Weight) {
		p.EffectiveWeight++
	}
	if t.best == nil || p.CurrentWeight > t.best.CurrentWeight {
		t.best = p
	}
}

// trunk is smooth weighted round robin over the candidates (§3). It returns
// nil if there are none.
func trunk(candidates []*peer) *peer {
	var t round
	for _, p := range candidates {
		t.add(p)
	}
	if t.best != nil {
		t.best.CurrentWeight -= t.total
	}
	return t.best
}

// take makes the peer the request's current one (§4).
func (b *Balancer) take(r *Request, p *peer) *peer {
	p.Conns++
	r.tried[p] = true
	r.current = p
	if b.now()-p.Checked > p.FailTimeout {
		p.Checked = b.now()
	}
	return p
}

// toBackup moves the request to the backup group, until it ends (§5). It reports
// false when there is none, or the request is there already.
func (b *Balancer) toBackup(r *Request) bool {
	if r.group+1 >= len(b.groups) {
		return false
	}
	r.group++
	r.tried = map[*peer]bool{}
	return true
}
