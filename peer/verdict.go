package peer

import (
	"fmt"
)

// Verdict is what a peer was to one request: considered, or why it was skipped.
type Verdict uint8

// The verdicts, in the order in which they are looked at.
const (
	// Considered: the request could have had the peer.
	Considered Verdict = iota
	// Tried: the request has had it already.
	Tried
	// Down, Draining: configured so.
	Down
	Draining
	// FailedOut: as many failures as it may have, within the fail timeout.
	FailedOut
	// Full: as many requests as it may hold.
	Full
)

var verdictNames = [...]string{"considered", "tried", "down", "draining", "failed", "full"}

// String returns the verdict in lower-case words.
func (v Verdict) String() string { return nameOf(verdictNames[:], uint8(v), "Verdict") }

// MarshalText spells the verdict as String does.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// verdict says of Eligible which of its tests was the one that refused. It is apart
// from Eligible because it is needed only for a Decision.
func (g *Group) verdict(i int, r *Request, now Now) Verdict {
	p := &g.peers[i]
	w := p.load.Load()
	switch {
	case r.tried.has(p.slot) && (!g.single || r.spent):
		return Tried
	case w&down != 0 && g.cold[i].drain:
		return Draining
	case w&down != 0:
		return Down
	case p.inWindow(w, now.Tick):
		return FailedOut
	case g.full(i, w):
		return Full
	}
	return Considered
}

// Rule is what decided for a peer, in lower-case words. A method of one's own may have
// rules of its own.
type Rule = string

// The rules.
const (
	// Undecided: no peer was got, or the method does not say.
	Undecided Rule = "undecided"
	// GreatestWeight: the greatest current weight, or the first of equals.
	GreatestWeight Rule = "greatest current weight"
	// OnlyPeer: a single peer is taken whatever its failures.
	OnlyPeer Rule = "only peer"
	// Bound: the client is bound to it by sticky, and the method lets it be.
	Bound Rule = "bound by sticky"
	// BoundPays: bound, and it pays for the round of round robin.
	BoundPays Rule = "bound by sticky, and pays"
	// BoundFree: bound, and so deep in debt that no peer pays.
	BoundFree Rule = "bound by sticky, too deep in debt to pay"
	// LeastConns, LeastTime: the smallest conns or expected time in relation
	// to the weight.
	LeastConns Rule = "least conns/weight"
	LeastTime  Rule = "least time/weight"
	// TieByTrunk: several were the smallest, and the trunk chose.
	TieByTrunk Rule = "tie settled by the trunk"
	// HashRange, RingPoint, AddressHash: where the key's or address's hash fell.
	HashRange   Rule = "hash range"
	RingPoint   Rule = "ring point"
	AddressHash Rule = "address hash"
	// Drawn, LessOfTwo: at random, one or the less loaded of two.
	Drawn     Rule = "drawn"
	LessOfTwo Rule = "less loaded of two drawn"
	// LongestOut: no peer was live, and Policy.LeastBad takes the one that has been
	// out for longest.
	LongestOut Rule = "none live; out for longest"
)

func nameOf(names []string, n uint8, kind string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("%s(%d)", kind, n)
}
