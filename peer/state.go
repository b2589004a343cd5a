package peer

// State is a peer's state at one moment, under nginx's names.
type State struct {
	// CurrentWeight and EffectiveWeight are the trunk's account.
	CurrentWeight, EffectiveWeight int64
	// Conns is the number of requests that hold the peer, Fails of the
	// failures that count at present.
	Conns, Fails int64
	// Accessed is when the last failure was, Checked when the peer was last
	// asked by a request that could have found it failed; both in ticks of the
	// clock (seconds by default) since the Unix epoch, 0 at first.
	Accessed, Checked int64
	// Times is what least_time keeps.
	Times Times
}

// State returns the state of peer i of the group Primary or Backup; a zero one if
// there is no such peer. Everybody who wants to see weights sees them through it.
func (u *Upstream) State(group, i int) State {
	if group != Primary && group != Backup {
		return State{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	g := &u.groups[group]
	if i < 0 || i >= len(g.peers) {
		return State{}
	}
	p, c := &g.peers[i], &g.cold[i]
	return State{
		CurrentWeight: g.currentWeight(i) / int64(p.one), EffectiveWeight: min(p.ew, p.weight) / int64(p.one),
		Conns: int64(p.load.conns()), Fails: int64(p.load.fails()),
		Accessed: c.accessed, Checked: p.checked,
		Times: c.times,
	}
}

// Peer is a peer as a request got it.
type Peer struct {
	// Server is its configuration, with nginx's defaults filled in.
	Server Server
	// SID is the session id by which sticky finds it again.
	SID string
	// Group is Primary or Backup, Index the place in that group's list.
	Group, Index int
}

// Peer returns the peer that r holds; false if it holds none.
func (u *Upstream) Peer(r *Request) (Peer, bool) {
	if u.holds(r) != nil {
		return Peer{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	g, i := u.peer(r.slot)
	return g.peer(i), true
}

func (g *Group) peer(i int) Peer {
	m := g.cold[i].member
	return Peer{Server: m.Server, SID: m.sid, Group: g.index, Index: i}
}

// Set returns the present set of servers.
func (u *Upstream) Set() *Set { return u.set.Load() }
