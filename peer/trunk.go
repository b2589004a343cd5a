package peer

import "math"

// Trunk is nginx's smooth weighted round robin, the one arithmetic that all
// methods share (docs/parity.md, section 3), as an accumulator: peers are added
// one by one, and the best so far pays for all.
//
// Each peer that is added gains its effective weight; the winner is the first
// of the list with the greatest current weight and loses what all have gained.
// An effective weight below the weight recovers by one, after it was used.
//
// A Trunk is a value, used under the upstream's lock within one Pick.
type Trunk struct {
	g      *Group
	best   int
	bestCW int64
	total  int64
}

// Trunk begins a choice among peers of g that the method adds: the door for
// subsets. Who uses it looks at the peers itself, so the group keeps no queues of
// them from then on.
func (g *Group) Trunk() Trunk {
	if g.queues != nil || g.levels != nil {
		g.export()
		g.scanMost = math.MaxInt
	}
	return Trunk{g: g, best: None}
}

// Add lets peer i take part. The caller has tested that it is eligible.
func (t *Trunk) Add(i int) {
	cw, ew := t.g.peers[i].gain()
	t.total += ew
	t.offer(i, cw)
}

// gain is a peer's part in a round: its cw with the ew that it gained.
func (p *state) gain() (cw, ew int64) {
	ew = p.ew
	p.cw += ew
	if ew < p.weight {
		p.ew = ew + int64(p.step)
	}
	return p.cw, ew
}

// offer compares a peer with the best so far. The larger current weight wins,
// then the place in the list; so the order in which peers are offered is
// of no account.
func (t *Trunk) offer(i int, cw int64) {
	if d := cw - t.bestCW; t.best < 0 || d > 0 || d == 0 && i < t.best {
		t.best, t.bestCW = i, cw
	}
}

// Best returns the winner so far; None before the first Add.
func (t *Trunk) Best() int { return t.best }

// Settle ends the choice: the best pays, and is returned. None if no peer was added.
func (t *Trunk) Settle() int { return t.settle(None) }

// settle lets the payer, if there is one, pay in place of the best, and returns
// who paid.
func (t *Trunk) settle(payer int) int {
	if payer < 0 {
		payer = t.best
	}
	if payer >= 0 {
		t.g.peers[payer].cw -= t.total
		t.g.paid = t.total
	}
	return payer
}
