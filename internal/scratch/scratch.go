// Package scratch is what trunk's own methods keep per request.
package scratch

// Scratch is a fixed piece of memory in each request, so that a get allocates nothing,
// and without pointers into a group, so that it outlives a change of the set. Only
// the method of the upstream writes it.
type Scratch struct {
	// Hash is the sum that hash carries through the request, or the h that
	// ip_hash has reached, or the hash of the ring's current point.
	Hash uint32
	// Hashes counts how often hash has hashed, Misses the peers that were not
	// available, both over the whole request.
	Hashes, Misses uint32
	// Begun says that Hash has been given a first value.
	Begun bool

	// The rest is of the held peer, and new with each get.

	// InFlight says that the peer counts this request as in flight.
	InFlight bool
	// Start is when the peer was taken, in milliseconds of the clock.
	Start int64
	// Connect, FirstByte and Header are the times from Start to these events,
	// in milliseconds; Unknown before.
	Connect, FirstByte, Header int64
}

// Unknown is a time in Scratch that has not come yet.
const Unknown = -1
