// Package oplog is what package peer hands to package recording: everything that is asked
// of an upstream, and what came of it. The types of package peer in it are parameters: it is
// peer that imports this package.
package oplog

import (
	"net/netip"
	"time"
)

// Recorder receives the operations of one upstream, in the order of the upstream's lock,
// so that they can be repeated.
//
// It is called outside the lock, by one goroutine at a time: one of those that
// call the upstream. A slow Recorder delays that one alone. Meanwhile
// operations wait, up to about 16 MB; if there are more the recording ends,
// with peer.ErrRecordingFull. It also ends with the first error that Record
// returns, or its panic. The upstream goes on in either case.
type Recorder[Method, Policy, Set any, State any] interface {
	// Start is called once, by peer.New, whose error its error is, or its panic.
	Start(Origin[Method, Policy, Set, State]) error
	// Record receives the operations that have come since, in order. They, and what
	// their slices hold, are its own only until it returns. It may call the upstream.
	Record([]Operation[Set, State]) error
}

// Origin is what a recording begins with.
type Origin[Method, Policy, Set any, State any] struct {
	// Method is as it was given to peer.New; nil: round robin. Binds says that its
	// selector has a Bind, as sticky's has.
	Method Method
	Binds  bool
	// Policy and Resolution are the upstream's.
	Policy     Policy
	Resolution time.Duration
	// Set are the servers. The state of each peer is that of a new one, but for Changed.
	Set     Set
	Changed []Change[State]
	// RandomStart is as in peer.Options; Draws are the random numbers that it took.
	RandomStart bool
	Draws       []uint64
	// Flush waits for a Record that is running, has the operations recorded that
	// are still waiting, and returns the error that ended the recording, if one
	// has. Record must not call it.
	Flush func() error
}

// Kind is what was asked of an upstream.
type Kind uint8

// The kinds of operations, by the methods of peer.Upstream.
const (
	Begin Kind = iota
	Get
	Connected
	FirstByte
	Header
	Free
	Update
)

// Operation is something that was asked of an upstream, and was done.
type Operation[Set any, State any] struct {
	Kind Kind
	// Time is what the clock said, since the Unix epoch, or had said last where it was not asked.
	Time time.Duration
	// Request numbers the requests from 1, as they begin. Over is the earlier
	// one whose Request value this one uses again; 0: none.
	Request, Over uint64
	// Given is what the request brings; Was what it brought at its last operation.
	Given, Was Given
	// MaxTries is the request's (Begin). Tries is how many are left
	// afterwards, GaveBack how many were given back since its last operation.
	MaxTries, Tries, GaveBack int
	// Draws are the 31-bit random numbers that were drawn, in order.
	Draws []uint32
	// Group and Index are the peer that was got (Get); Index -1: none.
	Group, Index int
	// Outcome is how the peer was freed (Free): a peer.Outcome.
	Outcome uint8
	// Since is the time since the last get in milliseconds (Connected, FirstByte,
	// Header, Free).
	Since int64
	// Set are the servers from now on (Update).
	Set Set
	// Changed are the peers that are not as they were; after Update, those that
	// are not as new. Removed peers are omitted.
	Changed []Change[State]
}

// Given is what a request brings to the choice of its peer; see peer.Request.
type Given struct {
	Key       string
	Client    netip.Addr
	Hint      string
	Stream    bool
	BackupTry bool
}

// Change is a peer of the primary or the backup group with its state before and after.
type Change[State any] struct {
	Group, Index int
	Was, Is      State
}
