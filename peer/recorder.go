package peer

import (
	"errors"
	"net/netip"
	"time"
)

// A Recorder is told everything that is asked of an upstream and what came of
// it, in the order of the upstream's lock, so that it can be done again.
// Package recording has one that writes to an io.Writer, and plays back.
//
// It is called outside the lock, by one goroutine at a time: one of those that
// call the upstream, whom a slow Recorder delays, and nobody else. Meanwhile
// operations wait, up to about 16 MB; if there are more the recording ends,
// with ErrRecordingFull. It also ends with the first error that Record
// returns, or its panic. The upstream goes on in either case.
//
// A recording costs much: each operation takes the lock and looks at every
// peer, and in round robin a get changes them all.
type Recorder interface {
	// Start is called once, by New, whose error its error is, or its panic.
	Start(Origin) error
	// Record is given the operations that have come since, in order. They, and what
	// their slices hold, are its own only until it returns. It may call the upstream.
	Record([]Operation) error
}

// ErrRecordingFull ends a recording whose Recorder was slower than the
// operations came.
var ErrRecordingFull = errors.New("trunk: the recording has ended: operations came faster than they were written")

// Origin is what a recording begins with.
type Origin struct {
	// Method is as it was given to New; nil: round robin. Binds says that its
	// selector has a Bind, as sticky's has.
	Method Method
	Binds  bool
	// Policy and Resolution are the upstream's.
	Policy     Policy
	Resolution time.Duration
	// Set are the servers. The state of each peer is that of a new one, but for Changed.
	Set     *Set
	Changed []Change
	// RandomStart is as in Options; Draws are the random numbers that it took.
	RandomStart bool
	Draws       []uint64
	// Flush waits for a Record that is running, has the operations recorded that
	// are still waiting, and returns the error that ended the recording, if one
	// has. Record must not call it.
	Flush func() error
}

// OperationKind is what was asked of an upstream.
type OperationKind uint8

// The kinds of operations, by the methods of Upstream.
const (
	OpBegin OperationKind = iota
	OpGet
	OpConnected
	OpFirstByte
	OpHeader
	OpFree
	OpUpdate
)

// Operation is something that was asked of an upstream, and was done.
type Operation struct {
	Kind OperationKind
	// Time is what the clock said, or had said last where it was not asked.
	Time time.Duration
	// Request numbers the requests from 1, as they begin. Over is the earlier
	// one whose Request value this one uses again; 0: none.
	Request, Over uint64
	// Given is what the request brings; Was what it brought at its last operation.
	Given, Was Given
	// MaxTries is the request's (OpBegin). Tries is how many are left
	// afterwards, GaveBack how many were given back since its last operation.
	MaxTries, Tries, GaveBack int
	// Draws are the 31-bit random numbers that were drawn, in order.
	Draws []uint32
	// Group and Index are the peer that was got (OpGet); Index None: none.
	Group, Index int
	// Outcome is how the peer was freed (OpFree).
	Outcome Outcome
	// Since is the time since the last get in milliseconds (OpConnected, OpFirstByte,
	// OpHeader, OpFree).
	Since int64
	// Set are the servers from now on (OpUpdate).
	Set *Set
	// Changed are the peers that are not as they were; after OpUpdate, those that
	// are not as new. Removed peers are not told of.
	Changed []Change
}

// Given is what a request brings to the choice of its peer; see Request.
type Given struct {
	Key       string
	Client    netip.Addr
	Hint      string
	Stream    bool
	BackupTry bool
}

// Change is a peer of Primary or Backup with its state before and after.
type Change struct {
	Group, Index int
	Was, Is      State
}
