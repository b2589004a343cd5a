package peer

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
	total  int64
	single bool
}

// state is what a choice reads and writes of one peer.
type state struct {
	cw, ew, weight int64
	checked        int64
	failTimeout    int64
	conns          int32
	maxConns       int32 // 0: no limit
	fails          int32
	maxFails       int32 // 0: never out
	slot           int32
	down           bool // or draining: the configuration lets nobody choose it
}

// cold is the rest of a peer's state.
type cold struct {
	accessed int64
	times    Times
	drain    bool
	member   *member
}

// Times is what least_time keeps of a peer: averages in milliseconds, and the
// account of the requests in flight (docs/parity.md, section 7).
type Times struct {
	// Header is the average time to the response header. In stream the same
	// place holds the time to the first byte.
	Header int64
	// Response is the average time to the end of the response.
	Response int64
	// Connect is the average time to the connection (stream).
	Connect int64
	// Inflight is the average age of the requests in flight; InflightLast
	// their summed ages at InflightChanged (it wraps, as nginx's does);
	// InflightReqs how many they are.
	Inflight        int64
	InflightLast    uint64
	InflightChanged int64
	InflightReqs    int64
}

// Len returns the number of peers, down ones included.
func (g *Group) Len() int { return len(g.peers) }

// Index returns Primary or Backup.
func (g *Group) Index() int { return g.index }

// Single reports whether this is the only peer of the upstream, which is
// taken whatever its failures.
func (g *Group) Single() bool { return g.single }

// TotalWeight returns the sum of the weights, down peers included.
func (g *Group) TotalWeight() int64 { return g.total }

// Weight returns the configured weight of peer i.
func (g *Group) Weight(i int) int64 { return g.peers[i].weight }

// Conns returns how many requests hold peer i.
func (g *Group) Conns(i int) int64 { return int64(g.peers[i].conns) }

// Idle returns for how many ticks longer than its fail timeout peer i has not
// been checked, and its fail timeout; idle is at most 0 for a peer in use.
func (g *Group) Idle(i int, now Now) (since, failTimeout int64) {
	p := &g.peers[i]
	return now.Tick - p.checked, p.failTimeout
}

// Times returns least_time's state of peer i, to be read and written.
func (g *Group) Times(i int) *Times { return &g.cold[i].times }

// Draw returns 31 random bits from the upstream's source.
func (g *Group) Draw() uint32 { return uint32(g.up.source.Uint64() >> 33) }

// Eligible reports whether r may have peer i (docs/parity.md, section 2): it was
// not tried in this request, is not down or draining, not in its fail window,
// and not full.
func (g *Group) Eligible(i int, r *Request, now Now) bool {
	p := &g.peers[i]
	return !p.down && g.open(p, r, now)
}

// EligibleDraining is Eligible for a request that is bound to peer i: draining does
// not keep it away (docs/parity.md, section 9).
func (g *Group) EligibleDraining(i int, r *Request, now Now) bool {
	p := &g.peers[i]
	return (!p.down || g.cold[i].drain) && g.open(p, r, now)
}

// open is eligibility but for down and drain.
func (g *Group) open(p *state, r *Request, now Now) bool {
	if p.maxFails > 0 && p.fails >= p.maxFails && now.Tick-p.checked <= p.failTimeout {
		return false
	}
	return !p.full() && !r.tried.has(p.slot)
}

func (p *state) full() bool { return p.maxConns > 0 && p.conns >= p.maxConns }

// roundRobin picks among all eligible peers of the group.
func (g *Group) roundRobin(r *Request, now Now) int {
	if g.single {
		return g.only(r)
	}
	payer := r.payer
	if payer >= 0 && g.peers[payer].cw <= g.peers[payer].weight-g.total {
		// The valve: a hinted peer so deep in debt is taken free of charge,
		// or its debt would grow without end.
		return payer
	}
	t := g.Trunk()
	for i := range g.peers {
		if g.Eligible(i, r, now) {
			t.Add(i)
		}
	}
	if payer < 0 {
		return t.Settle()
	}
	t.pay(payer)
	return payer
}

// only picks in a group of a single peer: nothing but down and max_conns
// refuses it.
func (g *Group) only(r *Request) int {
	if r.payer >= 0 {
		return r.payer
	}
	if p := &g.peers[0]; p.down || p.full() {
		return None
	}
	return 0
}

// take gives peer i to r (docs/parity.md, section 4).
func (g *Group) take(i int, r *Request, now Now) {
	p := &g.peers[i]
	p.conns++
	r.hold(p.slot, now)
	if g.single && r.payer < 0 {
		return // the account is kept only for a peer that a hint has chosen
	}
	r.tried.add(p.slot)
	// For a peer in its fail window this lets one request through per
	// window, the probe: to everybody else it has just been checked.
	if now.Tick-p.checked > p.failTimeout {
		p.checked = now.Tick
	}
}

// free takes peer i back from r (docs/parity.md, section 6).
func (g *Group) free(i int, o Outcome, now Now) {
	p, c := &g.peers[i], &g.cold[i]
	p.conns--
	if g.single {
		if o != Abandoned {
			p.fails = 0
		}
		return
	}
	switch o {
	case Failed:
		p.fails = saturated(p.fails)
		c.accessed, p.checked = now.Tick, now.Tick
		if p.maxFails > 0 {
			p.ew = max(0, p.ew-p.weight/int64(p.maxFails))
		}
	case OK, Next:
		g.alive(i)
	}
}

// alive clears the failures of a peer that answers, if it was taken more than
// the fail timeout after its last failure.
func (g *Group) alive(i int) {
	if g.cold[i].accessed < g.peers[i].checked {
		g.peers[i].fails = 0
	}
}
