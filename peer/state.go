package peer

// State is a peer's state at one moment, under nginx's names.
type State struct {
	// CurrentWeight and EffectiveWeight are the trunk's account.
	CurrentWeight   int64 `json:"cw"`
	EffectiveWeight int64 `json:"ew"`
	// Conns is the number of requests that hold the peer, Fails how
	// many failures count at present.
	Conns int64 `json:"conns"`
	Fails int64 `json:"fails"`
	// Accessed is when the last failure was, Checked when the peer was last
	// asked by a request that could have found it failed; both in ticks of the
	// clock (seconds by default) since the Unix epoch, 0 at first.
	Accessed int64 `json:"accessed"`
	Checked  int64 `json:"checked"`
	// Times is what least_time keeps.
	Times Times `json:"times,omitzero"`
}

// State returns the state of peer i of the group Primary or Backup; a zero one if
// there is no such peer. All who read weights read them through it.
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
	return g.state(i)
}

func (g *Group) state(i int) State { return g.stateOf(i, g.peers[i].load.Load()) }

// stateOf is the state of peer i when its word is w.
func (g *Group) stateOf(i int, w uint64) State {
	p, c := &g.peers[i], &g.cold[i]
	return State{
		CurrentWeight: g.configured(g.currentWeight(i)), EffectiveWeight: g.configured(p.ew),
		Conns: int64(p.conns(w)), Fails: int64(failsOf(w)),
		Accessed: c.accessed, Checked: p.checked,
		Times: g.timesOf(i),
	}
}

// Peer is a peer as a request got it.
type Peer struct {
	// Server is its configuration, with nginx's defaults filled in.
	Server `json:"server"`
	// SID is the session id by which sticky finds it again.
	SID string `json:"sid"`
	// Group is Primary or Backup, Index the place in that group's list.
	Group int `json:"group"`
	Index int `json:"index"`
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

func (g *Group) peer(i int) Peer { return g.cold[i].member.peer(g.index, i) }

// peer is a server as the peer in a place.
func (m *member) peer(group, i int) Peer {
	return Peer{Server: m.Server, SID: m.sid, Group: group, Index: i}
}

// Set returns the present set of servers.
func (u *Upstream) Set() *Set { return u.set.Load() }
