package model

// draw picks a peer of the request's group by a random number (§7). In the
// backup group the ranges are the backups' own: there nginx reads those of the
// primaries, beyond their end (quirk Q7).
func (b *Balancer) draw(r *Request) *peer {
	g := b.groups[r.group]
	return g.byRange(int64(b.config.Random()) % g.totalWeight)
}

// random is random (§7).
func (b *Balancer) random(r *Request) *peer {
	if len(b.groups[r.group].peers) < 2 || r.misses > maxMisses {
		return b.roundRobin(r)
	}
	if p := b.hinted(r); p != nil {
		return b.take(r, p)
	}
	for r.misses <= maxMisses {
		if p := b.draw(r); b.eligible(r, p) {
			return b.take(r, p)
		}
		r.misses++
	}
	return b.roundRobin(r)
}

// randomTwo is random two least_conn (§7). Keeping the first peer is a miss
// too, and at a tie the second wins (quirk Q4).
func (b *Balancer) randomTwo(r *Request) *peer {
	if len(b.groups[r.group].peers) < 2 || r.misses > maxMisses {
		return b.roundRobin(r)
	}
	if p := b.hinted(r); p != nil {
		return b.take(r, p)
	}
	var kept *peer
	for r.misses <= maxMisses {
		p := b.draw(r)
		if p == kept || !b.eligible(r, p) {
			r.misses++
			continue
		}
		if kept == nil {
			kept = p
			r.misses++
			continue
		}
		if load(p, kept) > load(kept, p) {
			p = kept
		}
		return b.take(r, p)
	}
	return b.roundRobin(r)
}
