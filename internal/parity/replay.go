package parity

import (
	"errors"
	"fmt"
	"slices"
)

// PeerState is everything that nginx remembers of one peer. Times are in
// seconds (Accessed, Checked) or milliseconds (the others).
type PeerState struct {
	CurrentWeight   int64
	EffectiveWeight int64
	Conns           int64
	Fails           int64
	Accessed        int64
	Checked         int64

	HeaderTime      int64 // in stream: the first byte time
	ResponseTime    int64
	ConnectTime     int64 // stream only
	InflightTime    int64
	InflightLast    int64 // the bits of an unsigned number
	InflightChanged int64
	InflightReqs    int64
}

// field is one field of a PeerState under its recorded name.
type field struct {
	name string
	of   func(*PeerState) *int64
}

var fields = []field{
	{"cw", func(s *PeerState) *int64 { return &s.CurrentWeight }},
	{"ew", func(s *PeerState) *int64 { return &s.EffectiveWeight }},
	{"conns", func(s *PeerState) *int64 { return &s.Conns }},
	{"fails", func(s *PeerState) *int64 { return &s.Fails }},
	{"accessed", func(s *PeerState) *int64 { return &s.Accessed }},
	{"checked", func(s *PeerState) *int64 { return &s.Checked }},
	{"header_time", func(s *PeerState) *int64 { return &s.HeaderTime }},
	{"response_time", func(s *PeerState) *int64 { return &s.ResponseTime }},
	{"connect_time", func(s *PeerState) *int64 { return &s.ConnectTime }},
	{"inflight_time", func(s *PeerState) *int64 { return &s.InflightTime }},
	{"inflight_last", func(s *PeerState) *int64 { return &s.InflightLast }},
	{"inflight_changed", func(s *PeerState) *int64 { return &s.InflightChanged }},
	{"inflight_reqs", func(s *PeerState) *int64 { return &s.InflightReqs }},
}

// fieldNamed returns the field of that name, or nil. The first byte time of
// stream and the header time of http are one slot.
func fieldNamed(name string) *field {
	if name == "first_byte_time" {
		name = "header_time"
	}
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

// Subject is an implementation that a scenario is replayed against: one
// upstream, as the scenario configures it. Requests are known by the ids of the
// recording. An error from any method is a failure of the replay.
type Subject interface {
	// Time sets the clock: ms since the Unix epoch, sec is its whole seconds.
	Time(sec, ms int64)
	// Request begins a request with op's key, client, cookies, arguments and cap.
	Request(id int, op *Op) (tries int, err error)
	// Get asks for a peer.
	Get(id int) (Got, error)
	// Header reports the response header, ms after the get. notified is false when
	// the status is one to retry on: then the balancer is to know nothing of it.
	Header(id int, ms int64, setCookie string, notified bool) error
	// Notify reports what of a stream, "connect" or "first_byte", ms after the get.
	Notify(id int, what string, ms int64) error
	// Next frees the attempt's peer with the state "FAILED" or "NEXT", and leaves
	// the request open. freed says whether there was a peer to free.
	Next(id int, state string) (freed bool, tries int, err error)
	// Fin ends the request, and frees its peer, if it has one, with the state "OK"
	// or "FAILED", ms after the get.
	Fin(id int, state string, ms int64) (freed bool, tries int, err error)
	// Sessions lists the live learned sessions, in the order of their IDs.
	Sessions() ([]Session, error)
	// State shows a peer.
	State(p Peer) PeerState
}

// Got is what a get came to.
type Got struct {
	Peer      *Peer // nil: BUSY
	Tries     int
	SetCookie []string // the cookies that the answer is to set, as of now
}

// Factory makes the subject of a scenario. All that the subject draws at random
// it has to draw from random, which gives 31-bit numbers.
type Factory func(s *Scenario, random func() uint32) (Subject, error)

// Replay runs a scenario against the subject that the factory makes of it. After
// every operation everything that was recorded of it must be so, and every field
// of every peer must have the value that follows from the recording. The error
// names the first difference.
func Replay(s *Scenario, factory Factory) error {
	r := &replay{}
	for i, p := range s.peers() {
		want := PeerState{EffectiveWeight: int64(s.Servers[i].Weight)}
		r.peers = append(r.peers, replayedPeer{p, p.String(), want})
	}
	var err error
	if r.subject, err = factory(s, r.random); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if err := r.checkStates(); err != nil {
		return fmt.Errorf("%s: at the start: %w", s.Name, err)
	}
	for i := range s.Ops {
		op := &s.Ops[i]
		if err := r.step(op); err != nil {
			return fmt.Errorf("%s: op %d: %s id=%d: %w", s.Name, i, op.Op, op.ID, err)
		}
	}
	return nil
}

// replay is the state of one Replay.
type replay struct {
	subject Subject
	peers   []replayedPeer

	draws     []uint32 // that the present operation has yet to consume
	overdrawn int      // how many it drew beyond them
}

// replayedPeer is a peer, its name in the recording, and the state it must have.
type replayedPeer struct {
	Peer
	name string
	want PeerState
}

// random is the subject's source.
func (r *replay) random() uint32 {
	if len(r.draws) == 0 {
		r.overdrawn++
		return 0
	}
	draw := r.draws[0]
	r.draws = r.draws[1:]
	return draw
}

// step runs one operation and makes all its checks.
func (r *replay) step(op *Op) error {
	r.draws, r.overdrawn = op.Draws, 0
	err := r.run(op)
	consumed := len(op.Draws) - len(r.draws) + r.overdrawn
	if err := errors.Join(err, equal("number of draws", len(op.Draws), consumed)); err != nil {
		return err // the states can only differ too
	}
	r.expect(op.Changed)
	return r.checkStates()
}

// expect notes what an operation is to have changed.
func (r *replay) expect(changed map[string]Changes) {
	for i := range r.peers {
		p := &r.peers[i]
		for name, value := range changed[p.name] {
			*fieldNamed(name).of(&p.want) = int64(value)
		}
	}
}

// run puts one operation to the subject, and checks its answer.
func (r *replay) run(op *Op) error {
	switch op.Op {
	case OpTime:
		r.subject.Time(op.Sec, op.MS)
		return nil
	case OpRequest:
		tries, err := r.subject.Request(op.ID, op)
		return errors.Join(err, equal("tries", op.Tries, tries))
	case OpGet:
		return r.get(op)
	case OpHeader:
		notified := op.Notified == nil || *op.Notified
		return r.subject.Header(op.ID, op.HeaderTime, op.UpstreamSetCookie, notified)
	case OpNotify:
		return r.subject.Notify(op.ID, op.What, op.MS)
	case OpNext:
		return checkFreed(op)(r.subject.Next(op.ID, op.State))
	case OpFin:
		return checkFreed(op)(r.subject.Fin(op.ID, op.State, op.ResponseTime))
	case OpSessions:
		got, err := r.subject.Sessions()
		return errors.Join(err, equalLists("sessions", op.Want, got))
	}
	return errors.New("no such operation")
}

func (r *replay) get(op *Op) error {
	got, err := r.subject.Get(op.ID)
	if err != nil {
		return err
	}
	return errors.Join(
		equal("peer", spell(op.Peer), spell(got.Peer)),
		equal("tries", op.Tries, got.Tries),
		equalLists("set_cookie", op.SetCookie, got.SetCookie),
	)
}

func checkFreed(op *Op) func(freed bool, tries int, err error) error {
	return func(freed bool, tries int, err error) error {
		return errors.Join(err, equal("freed", op.Freed, freed), equal("tries", op.Tries, tries))
	}
}

// checkStates compares every field of every peer.
func (r *replay) checkStates() error {
	for i := range r.peers {
		p := &r.peers[i]
		want, got := p.want, r.subject.State(p.Peer)
		if want == got {
			continue
		}
		var errs []error
		for _, f := range fields {
			errs = append(errs, equal(fmt.Sprintf("peer %s: %s", p.name, f.name), *f.of(&want), *f.of(&got)))
		}
		return errors.Join(errs...)
	}
	return nil
}

// spell writes a picked peer.
func spell(p *Peer) string {
	if p == nil {
		return "none (BUSY)"
	}
	return p.String()
}

func equal[T comparable](what string, want, got T) error {
	if want == got {
		return nil
	}
	return fmt.Errorf("%s: want %v, got %v", what, want, got)
}

// equalLists compares lists; an empty one is the same as none.
func equalLists[T comparable](what string, want, got []T) error {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return equal(fmt.Sprintf("%s: [%d]", what, i), want[i], got[i])
		}
	}
	return equal(what+": length", len(want), len(got))
}
