package peer

// fail counts a failure of peer i, and reports whether it has taken the peer out.
func (g *Group) fail(i int, now Now) bool {
	policy := &g.up.policy
	p, c := &g.peers[i], &g.cold[i]
	most := c.maxFails
	if policy.KeepLast && g.up.isLast(p.slot) {
		most = 0
	}
	if policy.Window > 0 && c.maxFails > 0 {
		p.load.recount(c.window.add(now.Milli, policy.Window.Milliseconds()) - 1)
	}
	return p.load.failed(most)
}

// isLast reports whether no other peer is left that is neither out nor down.
func (u *Upstream) isLast(slot int32) bool {
	for gi := range u.groups[:leaving] {
		g := &u.groups[gi]
		for i := range g.peers {
			if p := &g.peers[i]; p.slot != slot && p.load.Load()&(out|down) == 0 {
				return false
			}
		}
	}
	return true
}

// failTimes remembers when the last failures were, as many as take a peer out.
type failTimes struct {
	times []int64
	next  int
}

// add notes a failure, and returns how many there were within the length of time.
func (w *failTimes) add(now, length int64) int {
	if len(w.times) < cap(w.times) {
		w.times = append(w.times, now)
	} else {
		w.times[w.next] = now
		w.next = (w.next + 1) % len(w.times)
	}
	n := 0
	for _, t := range w.times {
		if now-t < length {
			n++
		}
	}
	return n
}

func (w *failTimes) clear() { w.times, w.next = w.times[:0], 0 }

// leastBad finds the peer that has been out for longest, of those that nothing
// else keeps r from; nil if there is none.
func (u *Upstream) leastBad(r *Request, now Now) (best *Group, at int) {
	for gi := range u.groups[:leaving] {
		g := &u.groups[gi]
		for i := range g.peers {
			if g.verdict(i, r, now) == FailedOut && !g.full(i, g.peers[i].load.Load()) &&
				(best == nil || g.peers[i].checked < best.peers[at].checked) {
				best, at = g, i
			}
		}
	}
	return best, at
}
