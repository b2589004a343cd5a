package balancer

import "github.com/trunklb/trunk/peer"

// What a program that looks in, or sets remedies, needs of package peer.
type (
	// Method chooses peers: roundrobin, leastconn, leasttime, hash, iphash or random,
	// or one's own; see package peer.
	Method = peer.Method
	// Policy holds the remedies for what a failure costs a peer, and Return those for
	// how it comes back.
	Policy = peer.Policy
	// Event is what has happened to a peer, to the set, or to the names that it was
	// made of; it is a slog.LogValuer. EventKind is its kind, and Lookup the result of
	// looking a name up again.
	Event     = peer.Event
	EventKind = peer.EventKind
	Lookup    = peer.Lookup
	// Decision is the record of one choice: the peers that were considered, why the
	// others were not (Candidate, Verdict), and which Rule chose. Its String is made for
	// tickets.
	Decision  = peer.Decision
	Candidate = peer.Candidate
	Verdict   = peer.Verdict
	Rule      = peer.Rule
	// PeerSnapshot is a peer in a Snapshot, and Counts what has happened to it, or to
	// the upstream, since the start.
	PeerSnapshot = peer.PeerSnapshot
	Counts       = peer.Counts
)

// The kinds of events; see peer.
const (
	PeerFailed   = peer.PeerFailed
	PeerEjected  = peer.PeerEjected
	PeerProbed   = peer.PeerProbed
	PeerAlive    = peer.PeerAlive
	PeerFull     = peer.PeerFull
	PeerIdle     = peer.PeerIdle
	SetChanged   = peer.SetChanged
	NoLivePeers  = peer.NoLivePeers
	NamesChanged = peer.NamesChanged
	LookupFailed = peer.LookupFailed
)

// The verdicts on a peer in a Decision, and the rules that choose; see peer.
const (
	Considered = peer.Considered
	Tried      = peer.Tried
	Down       = peer.Down
	Draining   = peer.Draining
	FailedOut  = peer.FailedOut
	Full       = peer.Full

	GreatestWeight = peer.GreatestWeight
	OnlyPeer       = peer.OnlyPeer
	Bound          = peer.Bound
	BoundPays      = peer.BoundPays
	BoundFree      = peer.BoundFree
	LeastConns     = peer.LeastConns
	LeastTime      = peer.LeastTime
	TieByTrunk     = peer.TieByTrunk
	HashRange      = peer.HashRange
	RingPoint      = peer.RingPoint
	AddressHash    = peer.AddressHash
	Drawn          = peer.Drawn
	LessOfTwo      = peer.LessOfTwo
	LongestOut     = peer.LongestOut
)
