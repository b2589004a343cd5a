package model

// leastConn is least_conn (§7).
func (b *Balancer) leastConn(r *Request) *peer {
	if b.single() {
		return b.roundRobin(r)
	}
	if p := b.hinted(r); p != nil {
		return b.take(r, p)
	}
	tied := leastLoaded(b.allEligible(r))
	switch len(tied) {
	case 0:
		if b.toBackup(r) {
			return b.leastConn(r)
		}
		return nil
	case 1:
		return b.take(r, tied[0]) // without the trunk: no weight changes
	default:
		return b.take(r, trunk(tied))
	}
}

// leastLoaded lists the peers whose conns / weight is the smallest.
func leastLoaded(list []*peer) []*peer {
	var best *peer
	for _, p := range list {
		if best == nil || load(p, best) < load(best, p) {
			best = p
		}
	}
	var tied []*peer
	for _, p := range list {
		if load(p, best) == load(best, p) {
			tied = append(tied, p)
		}
	}
	return tied
}

// load is p's side of the cross multiplication by which p and q are compared. What 64
// bits do not hold wraps.
func load(p, q *peer) uint64 { return uint64(p.Conns) * uint64(q.Weight) }
