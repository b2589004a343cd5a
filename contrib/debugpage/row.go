package debugpage

import (
	"cmp"

	"github.com/trunklb/trunk/peer"
)

// state is what a peer is to the next request, in a word.
type state struct {
	Word string
	Tone string // how it is coloured
}

var (
	live       = state{"live", "good"}
	recovering = state{"recovering", "warn"} // its effective weight is below its weight
	due        = state{"probe due", "warn"}  // it has failed out, and is asked again at the next chance
	full       = state{"full", "warn"}
	out        = state{"out", "bad"}
	draining   = state{"draining", "calm"}
	down       = state{"down", "calm"}
	removed    = state{"removed", "calm"}
)

// leaving is the group of the peers that were removed.
const leaving = 2

// row is a peer in the table.
type row struct {
	peer.PeerSnapshot
	Addr   string // as shown
	Name   string // as shown, if it differs
	State  state
	Note   string
	Wanted float64 // share of its group's available weights
	Got    float64 // share of its group's gets
	Recent float64 // share of its group's picks in the chart
	Picks  int     // picks in the chart
	Of     int     // of so many in its group
	looked bool    // one of these has considered it
	raw    string  // the address, to find it again
}

// IsBackup reports whether the peer is in the backup group.
func (r *row) IsBackup() bool { return r.Group == peer.Backup }

// Share is what the bar shows: of the last picks if they are known.
func (r *row) Share() float64 {
	if r.Of > 0 {
		return r.Recent
	}
	return r.Got
}

// rows makes a row for each peer of the snapshot; without one for each peer of
// the last decisions.
func (o *Options) rows(k *kept) []row {
	var rows []row
	for _, p := range k.snapshot.Peers {
		rows = append(rows, o.row(p, k))
	}
	if !k.watched {
		for _, p := range lastSeen(k.picks) {
			rows = append(rows, o.row(p, k))
		}
	}
	find := newFinder(rows)
	var of [2]int
	for i := range k.picks {
		w := k.picks[i].winner()
		if w == nil || w.Group < 0 || w.Group >= len(of) {
			continue
		}
		of[w.Group]++
		if n := find.row(w); n >= 0 {
			rows[n].Picks++
		}
	}
	for i := range k.picks {
		for n := range k.picks[i].Peers {
			c := &k.picks[i].Peers[n]
			if c.Verdict != peer.Down && c.Verdict != peer.Draining || n == k.picks[i].Winner {
				if r := find.row(c); r >= 0 {
					rows[r].looked = true
				}
			}
		}
	}
	shares(rows, of)
	return rows
}

func (o *Options) row(p peer.PeerSnapshot, k *kept) row {
	r := row{PeerSnapshot: p, raw: p.Server.Addr, Addr: o.shown(Addr, p.Server.Addr)}
	if p.Server.Name != p.Server.Addr {
		r.Name = o.shown(Addr, p.Server.Name)
	}
	s := &p.Server
	if r.Group != peer.Primary && r.Group != peer.Backup {
		r.Group, r.Removed = leaving, true
	}
	switch {
	case r.Removed:
		r.State = removed
	case s.Down:
		r.State = down
	case s.Drain:
		r.State = draining
	case p.Out && k.snapshot.Time.Before(p.OutUntil):
		r.State, r.Note = out, "probe in "+span(p.OutUntil.Sub(k.snapshot.Time))
	case p.Out:
		r.State = due
	case s.MaxConns > 0 && p.Conns >= int64(s.MaxConns):
		r.State = full
	case p.EffectiveWeight < int64(s.Weight):
		r.State = recovering
	default:
		r.State = live
	}
	return r
}

// shares are taken within a group: a backup competes with backups.
func shares(rows []row, of [2]int) {
	var weights, gets [3]float64
	for i := range rows {
		r := &rows[i]
		if r.wanted() {
			weights[r.Group] += float64(r.Server.Weight)
		}
		gets[r.Group] += float64(r.Gets)
	}
	for i := range rows {
		r := &rows[i]
		if r.wanted() {
			r.Wanted = float64(r.Server.Weight) / weights[r.Group]
		}
		if gets[r.Group] > 0 {
			r.Got = float64(r.Gets) / gets[r.Group]
		}
		if r.Group < len(of) && of[r.Group] > 0 {
			r.Of = of[r.Group]
			r.Recent = float64(r.Picks) / float64(r.Of)
		}
	}
}

// wanted reports whether the configuration means the peer to get anything.
func (r *row) wanted() bool { return !r.Removed && !r.Server.Down && !r.Server.Drain }

// troubled reports whether this peer belongs at the top of the page.
func (r *row) troubled() bool {
	return r.State != live || r.Fails > 0
}

// lastSeen makes snapshots of the candidates of the newest decision of each group.
func lastSeen(picks []pick) []peer.PeerSnapshot {
	var groups [2][]peer.PeerSnapshot
	for i := len(picks) - 1; i >= 0; i-- {
		var found [2][]peer.PeerSnapshot
		for _, c := range picks[i].Peers {
			if c.Group < 0 || c.Group >= len(found) {
				continue
			}
			found[c.Group] = append(found[c.Group], peer.PeerSnapshot{
				Peer: peer.Peer{Group: c.Group, Index: c.Index, Server: peer.Server{Addr: c.Addr, Name: cmp.Or(c.Name, c.Addr),
					Weight: int(c.Weight), MaxConns: int(c.MaxConns), MaxFails: int(c.MaxFails), Backup: c.Group == peer.Backup,
					Down: c.Verdict == peer.Down, Drain: c.Verdict == peer.Draining}},
				State: peer.State{CurrentWeight: c.CurrentAfter, EffectiveWeight: c.EffectiveAfter, Conns: c.Conns, Fails: c.Fails},
				Out:   c.Verdict == peer.FailedOut,
			})
		}
		for g := range found {
			if groups[g] == nil {
				groups[g] = found[g]
			}
		}
		if groups[peer.Primary] != nil && groups[peer.Backup] != nil {
			break
		}
	}
	return append(groups[peer.Primary], groups[peer.Backup]...)
}

// matching returns the rows that have the text in what is shown of their names or state.
func matching(rows []row, query string) []row {
	if query == "" {
		return rows
	}
	var found []row
	for i := range rows {
		if r := &rows[i]; contains(r.Addr, query) || contains(r.Name, query) || contains(r.State.Word, query) {
			found = append(found, *r)
		}
	}
	return found
}

// chosen returns at most most rows in their order: those in trouble before others.
func chosen(rows []row, most int) []row {
	if len(rows) <= most {
		return rows
	}
	troubled := 0
	for i := range rows {
		if rows[i].troubled() {
			troubled++
		}
	}
	troubled = min(troubled, most)
	calm := most - troubled
	var all []row
	for i := range rows {
		left := &calm
		if rows[i].troubled() {
			left = &troubled
		}
		if *left > 0 {
			*left--
			all = append(all, rows[i])
		}
	}
	return all
}

// finder finds the rows of candidates. Addresses outlive a change of the set,
// in which an index means another peer; but an address can be listed twice.
type finder struct {
	rows  []row
	named map[name][]int
}

type name struct {
	group int
	addr  string
}

func newFinder(rows []row) finder {
	f := finder{rows: rows, named: map[name][]int{}}
	for i := range rows {
		if r := &rows[i]; !r.Removed {
			n := name{r.Group, r.raw}
			f.named[n] = append(f.named[n], i)
		}
	}
	return f
}

// row returns the index of a candidate's row; -1: it has none any more.
func (f finder) row(c *peer.Candidate) int {
	same := f.named[name{c.Group, c.Addr}]
	if len(same) == 1 {
		return same[0]
	}
	for _, i := range same {
		if f.rows[i].Index == c.Index {
			return i
		}
	}
	return -1
}
