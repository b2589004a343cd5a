package peer

import "math"

// Group is one list of peers with their state: the primary or the backup group
// of an Upstream. A Selector gets it under the upstream's lock, and may use it
// only within that call.
type Group struct {
	up    *Upstream
	index int
	// peers is packed and contiguous, in list order, since the trunk walks it;
	// cold is what a walk does not touch.
	peers  []state
	cold   []cold
	times  []Times // nil: the method has no use for them
	unit   int64   // what a weight of 1 counts: 1, unless a remedy needs finer ones
	total  int64   // of the weights, in units
	weight int64   // of the weights as configured
	single bool
	paid   int64 // what the last who paid has paid, for the Decision
	// queues is the engine of a large group; nil: the scan.
	queues *queues
	// levels is the engine of a large group whose loads are compared; nil: the scan.
	levels *levels
	// scanMost is the number of peers up to which the scan is the engine: every one, where the
	// group is picked from in more than one way.
	scanMost int
	// ramps are the peers whose effective weight is a remedy's matter.
	ramps []ramp
	// candidates is room for what Candidates returns.
	candidates []int
	// loads is room for what scanLeast compares.
	loads []int64
}

// state is what a choice reads and writes of one peer: one cache line.
type state struct {
	// cw belongs to the engine: in a queue it holds another number.
	cw, ew, weight int64
	load           load
	checked        int64
	failTimeout    int64
	gets           uint64 // how often it was taken
	slot           int32
	step           int32 // what ew comes back by in a pick; 0: by time instead
}

// cold is the rest of a peer's state.
type cold struct {
	accessed int64
	penalty  int64                 // what a failure takes from ew
	maxFails uint32                // 0: never out
	window   *failTimes            // nil: no remedy counts by time
	maxConns uint32                // 0: no limit
	counts   [Abandoned + 1]uint64 // frees by outcome, but for OK
	drain    bool
	member   *member
	attached any
}

// Times is what least_time keeps of a peer: averages in milliseconds, and the
// account of the requests in flight (docs/parity.md, section 7).
type Times struct {
	// Header is the average time to the response header. In stream the same
	// place holds the time to the first byte.
	Header int64 `json:"header,omitempty"`
	// Response is the average time to the end of the response.
	Response int64 `json:"response,omitempty"`
	// Connect is the average time to the connection (stream).
	Connect int64 `json:"connect,omitempty"`
	// Inflight is the average age of the requests in flight; InflightLast
	// their summed ages at InflightChanged (it wraps, as nginx's does);
	// InflightReqs how many they are.
	Inflight        int64  `json:"inflight,omitempty"`
	InflightLast    uint64 `json:"inflight_last,omitempty"`
	InflightChanged int64  `json:"inflight_changed,omitempty"`
	InflightReqs    int64  `json:"inflight_reqs,omitempty"`
}

// Len returns the number of peers, down ones included.
func (g *Group) Len() int { return len(g.peers) }

// Index returns Primary or Backup.
func (g *Group) Index() int { return g.index }

// Single reports whether this is the only peer of the upstream, which is
// taken whatever its failures.
func (g *Group) Single() bool { return g.single }

// TotalWeight returns the sum of the weights, down peers included.
func (g *Group) TotalWeight() int64 { return g.weight }

// Weight returns the weight of peer i as configured, at least 1.
func (g *Group) Weight(i int) int64 { return g.configured(g.peers[i].weight) }

// configured is a number of weight in the unit of the configuration.
func (g *Group) configured(v int64) int64 {
	if g.unit == 1 {
		return v
	}
	return v / g.unit
}

// Conns returns how many requests hold peer i. A Selector that looks at it says so
// as a Comparer.
func (g *Group) Conns(i int) int64 { return int64(g.peers[i].conns(g.peers[i].load.Load())) }

// Idle returns how many ticks ago peer i was last checked, and its fail timeout
// in ticks.
func (g *Group) Idle(i int, now Now) (since, failTimeout int64) {
	p := &g.peers[i]
	return now.Tick - p.checked, p.failTimeout
}

// Times returns least_time's state of peer i, to be read and written.
func (g *Group) Times(i int) *Times {
	if g.times == nil {
		g.times = make([]Times, len(g.peers))
	}
	return &g.times[i]
}

// timesOf is a copy of least_time's state of peer i.
func (g *Group) timesOf(i int) Times {
	if g.times == nil {
		return Times{}
	}
	return g.times[i]
}

// Draw returns 31 random bits from the upstream's source.
func (g *Group) Draw() uint32 { return uint32(g.up.source.Uint64() >> 33) }

// Eligible reports whether r may have peer i (docs/parity.md, section 2): it was
// not tried in this request, is not down or draining, not in its fail window,
// and not full.
func (g *Group) Eligible(i int, r *Request, now Now) bool {
	p := &g.peers[i]
	return !g.barred(i, p.load.Load(), now) && !r.tried.has(p.slot)
}

// Candidates returns the peers of g that are Eligible, in list order. The list is
// the caller's to write into, but the group's memory: it is good for one Pick, until
// the next call.
func (g *Group) Candidates(r *Request, now Now) []int {
	peers, list := g.peers, g.candidates[:0]
	for i := range peers {
		p := &peers[i]
		if !g.barred(i, p.load.Load(), now) && !r.tried.has(p.slot) {
			list = append(list, i)
		}
	}
	g.candidates = list
	return list
}

// barred is what keeps peer i from every request.
func (g *Group) barred(i int, w uint64, now Now) bool {
	return w&guarded != 0 && (w&down != 0 || !g.open(i, w, now))
}

// anyFor reports whether r may have a peer of the group.
func (g *Group) anyFor(r *Request, now Now) bool {
	for i := range g.peers {
		if g.Eligible(i, r, now) {
			return true
		}
	}
	return false
}

// EligibleDraining is Eligible for a request that is bound to peer i: draining does
// not keep it away (docs/parity.md, section 9), nor, from the only peer there is,
// does having tried it since it is.
func (g *Group) EligibleDraining(i int, r *Request, now Now) bool {
	w := g.peers[i].load.Load()
	return (w&down == 0 || g.cold[i].drain) && g.open(i, w, now) && (g.single && !r.spent || !r.tried.has(g.peers[i].slot))
}

// open is eligibility but for down, drain and tried.
func (g *Group) open(i int, w uint64, now Now) bool {
	return !g.peers[i].inWindow(w, now.Tick) && !g.full(i, w)
}

// inWindow reports whether the peer, whose word is w, is in its fail window.
func (p *state) inWindow(w uint64, tick int64) bool {
	return w&out != 0 && tick-p.checked <= p.failTimeout
}

func (g *Group) full(i int, w uint64) bool {
	return w&limited != 0 && g.peers[i].conns(w) >= g.cold[i].maxConns
}

// PickAll is the entry point for a pick over the whole group, as a Selector's Pick: round
// robin (docs/parity.md, sections 3 and 5). Of all eligible peers the trunk chooses, and
// the peer that the request is bound to, if there is one, pays for its choice.
func PickAll(g *Group, r *Request, now Now) int {
	if g.single || r.payer >= 0 {
		if i, ok := g.preset(r); ok {
			return i
		}
	} else {
		r.Rule = GreatestWeight
	}
	if g.queues != nil {
		return g.queues.pick(g, r, now)
	}
	if g.levels != nil {
		g.export()
		g.scanMost = math.MaxInt
	}
	t := g.scan(r, now)
	return t.settle(r.payer)
}

// preset is what is decided without the trunk; ok reports whether anything is.
func (g *Group) preset(r *Request) (i int, ok bool) {
	payer := r.payer
	switch {
	case payer >= 0 && g.currentWeight(payer) <= g.peers[payer].weight-g.total:
		// The valve: a hinted peer so deep in debt is taken free of charge,
		// or its debt would grow without end.
		r.Rule = BoundFree
		return payer, true
	case g.single:
		// Nothing but down and max_conns refuses it; and, to a request that tried it
		// when it was not alone, that.
		r.Rule = OnlyPeer
		if w := g.peers[0].load.Load(); w&down != 0 || g.full(0, w) || r.spent {
			return None, true
		}
		return 0, true
	}
	r.Rule = BoundPays
	return None, false
}

// scan is the engine of small groups: all eligible peers are added. It is
// Trunk.Add in a loop, with the sums in registers.
func (g *Group) scan(r *Request, now Now) Trunk {
	best, bestCW, total := None, int64(math.MinInt64), int64(0)
	peers := g.peers // in registers too, though the loop writes into them
	for i := range peers {
		p := &peers[i]
		if g.barred(i, p.load.Load(), now) || r.tried.has(p.slot) {
			continue
		}
		cw, ew := p.gain()
		total += ew
		if cw > bestCW {
			best, bestCW = i, cw
		}
	}
	return Trunk{g, best, bestCW, total}
}

// currentWeight is cw, whatever the engine.
func (g *Group) currentWeight(i int) int64 {
	switch {
	case g.queues != nil:
		return g.queues.currentWeight(g, i)
	case g.levels != nil:
		return g.levels.currentWeight(g, i)
	}
	return g.peers[i].cw
}

// export leaves every peer's cw as the scan has it, and gives the engine up.
func (g *Group) export() {
	switch {
	case g.queues != nil:
		g.queues.export(g)
	case g.levels != nil:
		g.levels.export(g)
	}
	g.queues, g.levels = nil, nil
}

// changed is called when something may have changed that sets a peer apart: what it
// holds, its failures, its ew, its window. An engine looks at the peer, and puts it where
// it belongs.
func (g *Group) changed(i int, now Now) {
	switch {
	case g.queues != nil:
		g.queues.changed(g, int32(i))
	case g.levels != nil:
		g.levels.changed(g, i, now)
	}
}

// take gives peer i to r (docs/parity.md, section 4).
func (g *Group) take(i int, r *Request, now Now) {
	p := &g.peers[i]
	p.gets++
	r.hold(p, &g.cold[i])
	r.tried.add(p.slot)
	w := p.load.Load()
	if w&guarded != 0 {
		g.takeGuarded(i, w, r, now)
	}
	// For a peer in its fail window this lets one request through per
	// window, the probe: for other requests it has just been checked.
	if now.Tick-p.checked > p.failTimeout && !g.single {
		p.checked = now.Tick
	}
	// To the queues a take makes a difference only where there is a limit or a window.
	if w&guarded != 0 || g.levels != nil {
		g.changed(i, now)
	}
}

// takeGuarded is what else a take means to a peer that is not for every request.
func (g *Group) takeGuarded(i int, w uint64, r *Request, now Now) {
	if h := g.up.remedies; h != nil {
		h.taken(g, i, r)
	}
	if w&out != 0 && !g.single {
		g.note(PeerProbed, i, g.peers[i].ew, now)
	}
	if g.full(i, w) && !g.single {
		g.note(PeerFull, i, g.peers[i].ew, now)
	}
}

// free takes peer i back (docs/parity.md, section 6).
func (g *Group) free(i int, o Outcome, now Now) {
	p, c, h := &g.peers[i], &g.cold[i], g.up.remedies
	p.load.free()
	c.counts[o]++
	switch {
	case o == Abandoned:
	case g.single:
		p.load.healed()
	case o == Failed:
		maxFails := c.maxFails
		if h != nil {
			maxFails = h.maxFails(g, i, now)
		}
		ejected := p.load.failed(maxFails)
		c.accessed, p.checked = now.Tick, now.Tick
		before := p.ew
		if h == nil || !h.weaken(g, i, now) {
			p.ew = max(0, p.ew-c.penalty)
		}
		g.note(PeerFailed, i, before, now)
		if ejected {
			g.note(PeerEjected, i, before, now)
		}
	default:
		g.alive(i, now)
	}
	g.changed(i, now)
}

// alive clears the failures of a peer that answers, if it was taken more than
// the fail timeout after its last failure.
func (g *Group) alive(i int, now Now) {
	p, h := &g.peers[i], g.up.remedies
	if g.cold[i].accessed >= p.checked {
		return
	}
	w := p.load.Load()
	if w&(fails|out) == 0 || h != nil && h.remembers(w) {
		return
	}
	p.load.healed()
	if w&out != 0 {
		before := p.ew
		if h != nil {
			h.returned(g, i, now)
		}
		g.note(PeerAlive, i, before, now)
	}
	g.changed(i, now)
}
