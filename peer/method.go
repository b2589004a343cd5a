package peer

// Method is a load balancing method: immutable configuration that goroutines
// may share. Of one upstream's state it knows nothing; that is its Selector's.
type Method interface {
	// Build makes the selector for a set of servers, with whatever the method
	// computes from them beforehand. It is called anew when the set changes. A nil
	// Selector without an error is refused with a *ConfigError.
	Build(*Set) (Selector, error)
	// KeyText is the text, with nginx's variables in it, of the string that
	// the method wants as Request.Key. Empty: it wants none.
	KeyText() string
}

// Selector picks peers for one set. Pick and the methods of Events are called
// under the upstream's lock: they must be quick, must not block, allocate or
// panic, and need no lock of their own.
type Selector interface {
	// Pick returns the index in g of the peer that r shall have, or None, or
	// RoundRobin. The caller takes the peer (conns, tried, checked).
	Pick(g *Group, r *Request, now Now) int
}

// What Pick returns instead of an index.
const (
	// None: no peer of this group can be had. The request moves to the backup
	// group, and the selector is asked again there.
	None = -1
	// RoundRobin: the choice is left to round robin, for the rest of this
	// get and in the backup group too (docs/parity.md, section 7).
	RoundRobin = -2
)

// Binder is what a Selector may implement to bind requests to peers, as sticky
// does. The peer that it names becomes Request.Payer for this group.
type Binder interface {
	// Bind returns the index in g of the peer that r is bound to and may
	// have, or None. It is called before Pick, in each group that is asked.
	Bind(g *Group, r *Request, now Now) int
}

// Events is what a Selector may implement beside Pick to learn what becomes of
// the peers that were taken. i is the peer's index in g.
type Events interface {
	// Taken is called after a peer was taken, by whatever rule.
	Taken(g *Group, r *Request, i int, now Now)
	// Connected, FirstByte and Header are called when these have come from the
	// peer that r holds: the first two for stream, the last for http.
	Connected(g *Group, r *Request, i int, now Now)
	FirstByte(g *Group, r *Request, i int, now Now)
	Header(g *Group, r *Request, i int, now Now)
	// Freed is called before a peer is freed.
	Freed(g *Group, r *Request, i int, o Outcome, now Now)
}

// Comparer is what a Selector may implement whose Pick compares what the peers hold,
// Group.Conns, as least_conn does. A free that is OK needs no lock otherwise, and such a pick
// could miss one and see a later one: a state that never was.
type Comparer interface {
	// ComparesConns reports whether a free of any outcome has to wait for the
	// pick that is going on.
	ComparesConns() bool
}

// PickAll is the door for whole groups as a Selector: round robin
// (docs/parity.md, sections 3 and 5). Of all eligible peers the trunk chooses, and the
// peer that the request is bound to, if there is one, pays for its choice.
type PickAll struct{}

// Pick implements Selector.
func (PickAll) Pick(g *Group, r *Request, now Now) int { return g.roundRobin(r, now) }
