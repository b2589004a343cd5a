package peer

import (
	"time"

	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/internal/oplog"
)

// Internal is for trunk's own packages, which alone have the key: nothing behind it is
// promised.
func (u *Upstream) Internal(glue.Key) internal { return internal{u} }

type internal struct{ up *Upstream }

// Hold lets events wait until Release has been called as often. It is for callers that
// call Update under a lock of their own that the hook may want.
func (i internal) Hold() {
	if j := i.up.journal; j != nil {
		j.held.Add(1)
	}
}

// Release reports what has waited since Hold. The caller has no such lock any more, so
// that it need not wait for others that hold.
func (i internal) Release() {
	if j := i.up.journal; j != nil {
		j.held.Add(-1)
		i.up.callHooks()
	}
}

// Note puts an event of the caller's own in order among the upstream's, at the
// present time. Without an OnEvent it does nothing.
func (i internal) Note(e Event) {
	if i.up.journal == nil {
		return
	}
	i.up.noteLocked(e)
	i.up.report()
}

// Listens reports whether the method has to learn of Connected, FirstByte and Header. Where
// it need not, only Connected matters, and that only for stream.
func (i internal) Listens() bool { return i.up.listens.Load() }

// GiveBackTry adds a try to r: nginx does so for an attempt that failed on a
// kept-alive connection (docs/parity.md, section 8).
func (i internal) GiveBackTry(r *Request) {
	r.tries++
	r.gaveBack++
}

// Snapshot is Upstream.Snapshot, in which each peer is completed by what
// Options.Attach has made for it; now is the clock's time. complete must not call the upstream.
func (i internal) Snapshot(complete func(now time.Duration, p *PeerSnapshot, attached any)) Snapshot {
	return i.up.snapshot(complete)
}

// What a Recorder is given, see package oplog.
type (
	recorder  = oplog.Recorder[Method, Policy, *Set, State]
	origin    = oplog.Origin[Method, Policy, *Set, State]
	operation = oplog.Operation[*Set, State]
	change    = oplog.Change[State]
)
