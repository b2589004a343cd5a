package peer

// Method is a load balancing method: immutable configuration that goroutines
// may share. It knows nothing of an upstream's state; its Selector does.
//
// A method around another one embeds it, and changes what Build or Describe
// return: both are plain values, in which everything else stays as it was.
type Method interface {
	// Build makes the selector for a set of servers, with whatever the method
	// computes from them beforehand. It is called again when the set changes. A
	// Selector without a Pick is refused with a *ConfigError.
	Build(*Set) (Selector, error)
	// Describe returns what the method is and needs. It never changes. The zero
	// Description will do: see [Describe].
	Describe() Description
}

// Selector picks peers for one set. Its functions are called under the upstream's
// lock: they must be quick, must not block, allocate or panic, and need no lock of
// their own. All but Pick may be nil.
type Selector struct {
	// Pick returns the index in g of the peer for r, or None, or RoundRobin. The
	// caller takes the peer (conns, tried, checked).
	Pick func(g *Group, r *Request, now Now) int
	// ComparesConns says that Pick compares what the peers hold, Group.Conns, as
	// least_conn does. A free that is OK needs no lock otherwise, and such a pick
	// could miss one and see a later one: a state that never was.
	ComparesConns bool
	// Load returns what Group.Least compares peers by, in relation to their weights, for
	// a Pick that calls it: at least 0. nil: Conns.
	Load func(g *Group, i int, now Now) int64
	// LoadUntil returns the first tick after now at which Load would return something
	// else although nothing happens to the peer; NoTick if there is none. What
	// happens to a peer is what Taken and the functions below it report. nil, beside a
	// Load: it may change at any time, so every pick has to look at all peers.
	LoadUntil func(g *Group, i int, now Now) int64
	// LoadRule is what the Decision says where one peer has less than all others.
	// Empty: LeastConns.
	LoadRule Rule
	// TiesByWinner finds the tied peers as nginx does in least_time (quirk Q1): a peer
	// is tied if it has the first one's load for the weight of the winner so far.
	TiesByWinner bool
	// Bind binds requests to peers, as sticky does: it returns the index in g of the
	// peer that r is bound to and that is available to it, or None. It is called
	// before Pick, in each group that is asked; the peer becomes Request.Payer.
	Bind func(g *Group, r *Request, now Now) int
	// Explain returns what the method knows of peer i, for Candidate.Detail. It is
	// called only for explained gets.
	Explain func(g *Group, r *Request, i int, now Now) string
	// Taken is called after peer i was taken for r, by whatever rule.
	Taken func(g *Group, r *Request, i int, now Now)
	// Connected, FirstByte and Header are called when these have come from the
	// peer i that r holds: the first two for stream, the last for HTTP.
	Connected, FirstByte, Header func(g *Group, r *Request, i int, now Now)
	// Freed is called before peer i is freed.
	Freed func(g *Group, r *Request, i int, o Outcome, now Now)
}

// listens reports whether the selector has to see every event.
func (s *Selector) listens() bool {
	return s.Taken != nil || s.Connected != nil || s.FirstByte != nil || s.Header != nil || s.Freed != nil
}

// comparesFrees reports whether a pick has to see every free.
func (s *Selector) comparesFrees() bool { return s.ComparesConns || s.Load != nil || s.listens() }

// What Pick returns instead of an index.
const (
	// None: no peer of this group is available. The request moves to the backup
	// group, and the selector is asked again there.
	None = -1
	// RoundRobin: the choice is left to round robin, for the rest of this
	// get and in the backup group too (docs/parity.md, section 7).
	RoundRobin = -2
)
