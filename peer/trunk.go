package peer

// Trunk is nginx's smooth weighted round robin, the one arithmetic that all
// methods share (docs/parity.md, section 3), as an accumulator: peers are added
// one by one in list order, and the best so far pays for all.
//
// Each peer that is added gains its effective weight; the winner is the first
// with the greatest current weight and loses what all have gained. An effective
// weight below the weight recovers by one, after it was used.
//
// A Trunk is a value, used under the upstream's lock within one Pick.
type Trunk struct {
	g      *Group
	best   int
	bestCW int64
	total  int64
}

// Trunk begins a choice among peers of g that the method adds.
func (g *Group) Trunk() Trunk { return Trunk{g: g, best: None} }

// Add lets peer i take part. The caller has tested that it is eligible.
func (t *Trunk) Add(i int) {
	p := &t.g.peers[i]
	cw := p.cw + p.ew
	p.cw = cw
	t.total += p.ew
	if p.ew < p.weight {
		p.ew++
	}
	if t.best < 0 || cw > t.bestCW {
		t.best, t.bestCW = i, cw
	}
}

// Best returns the winner so far; None before the first Add.
func (t *Trunk) Best() int { return t.best }

// Settle ends the choice: the best pays, and is returned. None if no peer was added.
func (t *Trunk) Settle() int {
	if t.best >= 0 {
		t.pay(t.best)
	}
	return t.best
}

// pay takes the total from the peer that is chosen, who need not be the best.
func (t *Trunk) pay(i int) { t.g.peers[i].cw -= t.total }
