package peer

// remedies are what a Policy does otherwise than nginx. The rules in group.go and
// upstream.go are nginx's alone; where a Policy may differ they ask the hooks below. An
// upstream whose Policy is nginx's way has none (nil). All are called under the lock.
type remedies struct {
	Policy
	// In milliseconds; 0: not wanted.
	recovery, window, slowStart int64
}

func newRemedies(p Policy) *remedies {
	if p == (Policy{}) {
		return nil
	}
	return &remedies{Policy: p, recovery: p.Recovery.Milliseconds(), window: p.Window.Milliseconds(),
		slowStart: p.SlowStart.Milliseconds()}
}

// configure sets what a failure costs the new peer i, and makes room for its failures.
func (h *remedies) configure(g *Group, i int) {
	c := &g.cold[i]
	if h.Penalty > 0 {
		c.penalty = max(1, int64(h.Penalty*float64(c.member.Weight))) * g.unit
	}
	if h.window > 0 {
		c.window = &failTimes{times: make([]int64, 0, c.member.MaxFails)}
	}
}

// inherit gives peer i what peer j of the list from was going through. judged is its
// word by nginx's rule, was the one before.
func (h *remedies) inherit(g *Group, i int, from *Group, j int, was, judged uint64) uint64 {
	c, past := &g.cold[i], &from.cold[j]
	if r := from.ramp(j); r != nil && r.from < float64(g.peers[i].weight) {
		next := *r
		next.peer = i
		g.peers[i].step = from.peers[j].step
		g.ramps = append(g.ramps, next)
	}
	if c.maxFails == past.maxFails {
		c.window = past.window
		return judged
	}
	if (h.KeepLast || h.window > 0) && c.maxFails > 0 && failsOf(was) >= c.maxFails {
		// Which peer is kept though it has failed, or how much it has failed lately, the
		// count does not say: the next failure will.
		return was
	}
	return judged
}

// added begins the slow start of a peer that was added to a running upstream.
func (h *remedies) added(g *Group, i int, now Now) { h.startSlowly(g, i, now) }

// taken counts the try that a bound request has with a draining peer.
func (h *remedies) taken(g *Group, i int, r *Request) {
	if h.BoundTries && g.cold[i].drain {
		r.tries++
	}
}

// maxFails is how many failures take peer i out when it fails now; 0: none does.
// Under a window it makes the count that of the failures within it.
func (h *remedies) maxFails(g *Group, i int, now Now) uint32 {
	p, c := &g.peers[i], &g.cold[i]
	if h.window > 0 && c.maxFails > 0 {
		p.load.recount(c.window.add(now.Milli, h.window) - 1)
	}
	if h.KeepLast && g.up.isLast(p.slot) {
		return 0
	}
	return c.maxFails
}

// isLast reports whether no other peer is left that is neither out nor down.
func (u *Upstream) isLast(slot int32) bool {
	for gi := range u.groups[:removed] {
		g := &u.groups[gi]
		for i := range g.peers {
			if p := &g.peers[i]; p.slot != slot && p.load.Load()&(out|down) == 0 {
				return false
			}
		}
	}
	return true
}

// remembers reports whether a success does not clear the failures of a peer whose
// word is w: under a window only time does, unless the peer was out.
func (h *remedies) remembers(w uint64) bool { return h.window > 0 && w&out == 0 }

// weaken takes a failure's penalty from a peer whose effective weight is a matter of
// time. It reports false where it is not.
func (h *remedies) weaken(g *Group, i int, now Now) bool {
	p := &g.peers[i]
	penalty, duration, from := g.cold[i].penalty, h.recovery, float64(p.ew)
	if r := g.ramp(i); r != nil {
		from = r.at(p.weight, now)
		if duration == 0 {
			duration = r.duration
		}
	}
	if duration == 0 || penalty == 0 {
		return false
	}
	g.startRamp(i, max(0, from-float64(penalty)), duration, now)
	return true
}

// returned is called for a peer that was out and answers again.
func (h *remedies) returned(g *Group, i int, now Now) {
	if w := g.cold[i].window; w != nil {
		w.clear()
	}
	if h.Forgive {
		for k := range g.peers {
			switch {
			case g.queues != nil:
				g.queues.setAside(g, int32(k))
			case g.levels != nil:
				g.levels.setAside(g, k)
			}
			g.peers[k].cw = 0
		}
	}
	h.startSlowly(g, i, now)
}

// startSlowly puts peer i on the ramp of a slow start, if there is to be one.
func (h *remedies) startSlowly(g *Group, i int, now Now) {
	if h.slowStart > 0 {
		g.startRamp(i, slowStartFloor*float64(g.peers[i].weight), h.slowStart, now)
	}
}

// beforePick sets the effective weights of the peers on a ramp.
func (h *remedies) beforePick(g *Group, now Now) {
	still := g.ramps[:0]
	for _, r := range g.ramps {
		p := &g.peers[r.peer]
		if now.Milli-r.since >= r.duration {
			p.ew, p.step = p.weight, int32(g.unit)
			continue
		}
		p.ew = int64(r.at(p.weight, now))
		still = append(still, r)
	}
	g.ramps = still
}

// leastBad finds the peer for a request that found none: the one that has been out for
// longest, of those that nothing else keeps r from; nil if there is none.
func (h *remedies) leastBad(u *Upstream, r *Request, now Now) (best *Group, at int) {
	if !h.LeastBad {
		return nil, None
	}
	at = None
	for gi := range u.groups[:removed] {
		g := &u.groups[gi]
		for i := range g.peers {
			if g.verdict(i, r, now) == FailedOut && !g.full(i, g.peers[i].load.Load()) &&
				(best == nil || g.peers[i].checked < best.peers[at].checked) {
				best, at = g, i
			}
		}
	}
	if best != nil {
		r.Rule = LongestOut
	}
	return best, at
}

// keepBackup moves a request that has one try left to the backup group, if it has a
// peer there.
func (u *Upstream) keepBackup(r *Request, now Now) {
	if r.gets > 1 && r.tries == 1 && u.groups[Backup].anyFor(r, now) {
		r.group = Backup
	}
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

// ramp is the way of one peer's effective weight back to its weight by time. Without one
// ew comes back in state.gain, as in nginx.
type ramp struct {
	peer     int
	from     float64 // effective weight at since
	since    int64   // ms
	duration int64   // ms
}

// rampUnit is what a weight of 1 counts in an upstream with ramps, so that
// there is something between 0 and 1. The picks are the same in any unit.
const rampUnit = 1000

// unit is what a weight of 1 counts; of no remedies 1.
func (h *remedies) unit() int64 {
	if h != nil && (h.recovery > 0 || h.slowStart > 0) {
		return rampUnit
	}
	return 1
}

// slowStartFloor is the share of its weight that a peer begins a slow start with.
const slowStartFloor = 0.01

// at is the effective weight at a time.
func (r *ramp) at(weight int64, now Now) float64 {
	share := float64(now.Milli-r.since) / float64(r.duration)
	return r.from + float64((float64(weight)-r.from)*min(max(share, 0), 1))
}

// ramp returns the ramp that peer i is on, or nil.
func (g *Group) ramp(i int) *ramp {
	for k := range g.ramps {
		if g.ramps[k].peer == i {
			return &g.ramps[k]
		}
	}
	return nil
}

// startRamp puts peer i on a ramp that begins now, from below its weight. It is in no
// queue: it is new, was out, or has just failed, for which free takes it out.
func (g *Group) startRamp(i int, from float64, duration int64, now Now) {
	p := &g.peers[i]
	r := g.ramp(i)
	if r == nil {
		g.ramps = append(g.ramps, ramp{})
		r = &g.ramps[len(g.ramps)-1]
	}
	*r = ramp{peer: i, from: from, since: now.Milli, duration: duration}
	p.ew, p.step = int64(from), 0
}
