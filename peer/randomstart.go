package peer

import "math/rand/v2"

// maxSkipped bounds the time that a random start takes to a fraction of a second.
const maxSkipped = 1 << 17

// randomStart skips a random number of picks of each group, up to a whole cycle
// (Options.RandomStart). Every point of the cycle is as likely as any other, which
// makes the first pick fall on each peer with the probability of its weight; a
// random first peer would not, for the weights would be lost.
func (u *Upstream) randomStart() {
	r := Request{payer: None}
	r.tried.reset(u.set.Load().slots)
	now := u.now()
	random := rand.New(u.source)
	for k := range u.groups {
		g := &u.groups[k]
		if g.single || len(g.peers) == 0 {
			continue
		}
		for range random.Int64N(g.cycle()) {
			PickAll(g, &r, now)
		}
	}
}

// cycle is the number of picks after which a group that loses no peer begins
// again, at most maxSkipped and at least 1.
func (g *Group) cycle() int64 {
	sum, divisor := int64(0), int64(0)
	for i := range g.peers {
		if p := &g.peers[i]; p.load.Load()&down == 0 {
			sum += p.weight
			divisor = gcd(p.weight, divisor)
		}
	}
	if divisor == 0 {
		return 1 // no peer can be picked
	}
	return min(sum/divisor, maxSkipped)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
