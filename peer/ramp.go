package peer

// ramp is the way of one peer's effective weight back to its weight by time,
// under a Policy. Without a policy there are none, and ew comes back in
// state.gain, as in nginx.
type ramp struct {
	peer     int
	from     float64 // effective weight at since
	since    int64   // ms
	duration int64   // ms
}

// rampUnit is what a weight of 1 counts in an upstream with ramps, so that
// there is something between 0 and 1. The picks are the same in any unit.
const rampUnit = 1000

// unit is what a weight of 1 counts.
func (p Policy) unit() int64 {
	if p.Recovery > 0 || p.Return.SlowStart > 0 {
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

// climb sets the effective weights of the peers on a ramp for the next pick.
func (g *Group) climb(now Now) {
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

// weaken takes a failure's penalty from peer i's effective weight.
func (g *Group) weaken(i int, now Now) {
	p := &g.peers[i]
	penalty := g.cold[i].penalty
	duration := g.up.policy.Recovery.Milliseconds()
	from := float64(p.ew)
	if r := g.ramp(i); r != nil {
		from = r.at(p.weight, now)
		if duration == 0 {
			duration = r.duration
		}
	}
	if duration > 0 && penalty > 0 {
		g.startRamp(i, max(0, from-float64(penalty)), duration, now)
		return
	}
	p.ew = max(0, p.ew-penalty)
}

// returned does what the policy says for a peer that was out and answers again.
func (g *Group) returned(i int, now Now) {
	policy := &g.up.policy.Return
	if policy.Forgive {
		for k := range g.peers {
			if g.queues != nil {
				g.queues.setAside(g, k)
			}
			g.peers[k].cw = 0
		}
	}
	g.slowStart(i, now)
}

// slowStart puts peer i on the ramp of the policy's slow start, if it has one.
func (g *Group) slowStart(i int, now Now) {
	if d := g.up.policy.Return.SlowStart.Milliseconds(); d > 0 {
		g.startRamp(i, slowStartFloor*float64(g.peers[i].weight), d, now)
	}
}
