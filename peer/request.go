package peer

import (
	"net/netip"

	"github.com/trunklb/trunk/internal/scratch"
)

// Request is one request on its way through an upstream: which peers it has
// tried, how many tries are left, which peer it holds. The caller fills in the
// exported fields, calls Upstream.Begin, and may then Get and Free by turns.
// It must not be copied once begun, and belongs to one goroutine at a time; it may be used again with a
// new Begin, and then allocates nothing.
type Request struct {
	// Key is what hash hashes. Empty: round robin.
	Key string
	// Client is the client's address for ip_hash. IPv4 counts by its first
	// three octets. The zero value is for clients without an IP address
	// (unix sockets), who all share one peer.
	Client netip.Addr
	// Hint is the sid of the peer that the client is bound to; sticky looks it
	// up at each get. Empty: none.
	Hint string
	// MaxTries lowers the number of tries (next_upstream_tries). 0: as many
	// as there are peers that are not down or draining.
	MaxTries int
	// BackupTry keeps the last try for the backup group, if it has a peer then
	// that is available: without it a low MaxTries never gets there.
	BackupTry bool
	// Stream says that this is a TCP or UDP session, not an HTTP request:
	// Connected then makes a peer live again, and least_time averages the
	// times that nginx averages in stream.
	Stream bool
	// Rule is what decided in the last get. The method sets it, to show in the
	// Decision; it may be a text of its own.
	Rule Rule
	// Scratch is what trunk's own methods keep.
	Scratch scratch.Scratch

	up    *Upstream
	set   *Set // the set of the last Begin or Get
	tried slotSet
	tries int
	gets  int
	payer int
	group int8
	held  bool
	// spent: the only peer of the present set was tried in an earlier one.
	spent bool
	// fellBack: in the last get the method left the choice to round robin.
	fellBack bool
	// The held peer: its slot, and where its state was when it was taken.
	slot int32
	at   *state
	cold *cold
	// gaveBack counts the tries given back, and noted is what was noted, for the record.
	gaveBack int
	noted    *noted
	_        noCopy
}

// Tries returns how many tries are left.
func (r *Request) Tries() int { return r.tries }

// Attached returns what Options.Attach has made for the peer that r holds; nil
// if it holds none.
func (r *Request) Attached() any {
	if !r.held {
		return nil
	}
	return r.cold.attached
}

// Payer returns the index in the present group of the peer that the request is
// bound to by sticky and may have; None: none.
func (r *Request) Payer() int { return r.payer }

// begin makes r a new request in a set.
func (r *Request) begin(u *Upstream, set *Set) {
	r.up, r.set, r.group, r.payer = u, set, Primary, None
	r.gets, r.gaveBack, r.spent = 0, 0, false
	s := &r.Scratch
	s.Hash, s.Hashes, s.Misses, s.Begun = 0, 0, 0, false
	r.tried.reset(set.slots)
	r.tries = set.tries()
	if r.MaxTries > 0 {
		r.tries = min(r.tries, r.MaxTries)
	}
}

// hold notes that r has got a peer.
func (r *Request) hold(p *state, c *cold) { r.held, r.slot, r.at, r.cold = true, p.slot, p, c }

// time begins the account of the times of the peer that r has got.
func (r *Request) time(now Now) {
	s := &r.Scratch
	s.Start = now.Milli
	s.InFlight = false
	s.Connect, s.FirstByte, s.Header = scratch.Unknown, scratch.Unknown, scratch.Unknown
}

// moveTo carries the request over to a changed set, under the upstream's lock. What it
// has tried is known by slot; a slot that has got a new peer since is not tried. For
// each new peer there is another try: those that were counted may be gone.
func (r *Request) moveTo(set *Set) {
	if r.set.version == set.version {
		r.set = set // other labels
		return
	}
	r.tried.grow(set.slots)
	for slot := range r.tried.all() {
		if set.born[slot] > r.set.version {
			r.tried.remove(slot)
		}
	}
	tries := r.tries + r.up.newcomers(set, r.set.version)
	if r.MaxTries > 0 {
		used := r.gets
		if r.held {
			used--
		}
		tries = min(tries, max(r.tries, r.MaxTries-used))
	}
	// Within one set the only peer may be picked again, as in nginx.
	if r.spent = set.single && r.tried.has(r.up.groups[Primary].peers[0].slot); r.spent {
		tries = 0
	}
	r.tries = tries
	// There may be a new primary peer, and there may be no backups any more.
	r.group = Primary
	r.set = set
}

// newcomers counts the usable peers of the present set that an earlier one did
// not have.
func (u *Upstream) newcomers(set *Set, since int) (n int) {
	for gi := range u.groups[:removed] {
		for i := range u.groups[gi].peers {
			p := &u.groups[gi].peers[i]
			if set.born[p.slot] > since && p.load.Load()&down == 0 {
				n++
			}
		}
	}
	return n
}

// release notes that r holds no peer any more. A single peer is not tried again;
// after one that was removed the single one is.
func (r *Request) release(set *Set, removed bool) {
	r.held = false
	switch {
	case set.single && !removed:
		r.tries = 0
	case r.tries > 0:
		r.tries--
	}
}

// noCopy lets go vet find copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
