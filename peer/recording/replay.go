package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/trunklb/trunk/peer"
)

// Step is an operation that has been replayed.
type Step struct {
	// Recording is the name of the recording, Number counts its operations from 0.
	Recording string
	Number    int
	// Op is the operation's name, Request the id of its request, as in the file.
	Op      string
	Request int64
	// Time is the clock's, in UTC.
	Time time.Time
	// State is how an attempt ended ("next" and "fin"): OK, FAILED, NEXT or
	// ABANDONED.
	State string
	// Decision is how a get was decided; nil for other operations. It is
	// overwritten by the next get.
	Decision *peer.Decision
}

// Result is how much has been replayed to the same picks and states.
type Result struct {
	// Recordings, Operations and Gets are counted.
	Recordings, Operations, Gets int
	// Cut says that the last recording has no end: its writer was not closed.
	Cut bool
	// End is why the last recording ended before it was closed. Empty: it did not.
	End string
}

// Replay does everything again that r has recorded, on fresh upstreams with the
// recorded clock and random numbers, and compares every pick and the whole state
// of every peer. r holds one recording or several, of a [Writer] or of nginx.
//
// The first difference is returned as a *[Difference]; other errors say that
// something is no recording, or cannot be made an upstream (ErrNoHints,
// *peer.ConfigError and others, wrapped). Result says in any case how far it got.
//
// m is the method, as it was given to peer.New: needed for one that is not trunk's, or
// that was around another. nil: what the recording names. each is called after every
// operation; its error ends the replay, and is Replay's. nil: steps are not reported.
//
// Memory is needed for the requests that are recorded, about 400 bytes each, but for
// those whose peer.Request was begun again.
func Replay(r io.Reader, m peer.Method, each func(*Step) error) (Result, error) {
	var result Result
	for in := newReader(r); ; {
		p := &player{method: m, each: each, result: &result}
		end, err := in.next(p.begin, p.step)
		switch {
		case err == io.EOF && result.Recordings > 0:
			return result, nil
		case err == io.EOF:
			return result, errors.New("trunk: recording: there is none")
		case errors.Is(err, errCut) && p.up != nil:
			result.Cut = true
			result.Recordings++
			return result, nil
		case err != nil:
			return result, p.wrap(err)
		}
		result.Recordings++
		result.End = end
	}
}

// player replays one recording.
type player struct {
	method   peer.Method // as it was given, or nil
	each     func(*Step) error
	result   *Result
	header   *header
	up       *peer.Upstream
	requests map[int64]*peer.Request
	want     [2][]peer.State
	decision peer.Decision

	number    int // of the present operation
	op        *operation
	now       time.Duration
	source    playback
	differing *Difference
}

// wrap says where an error comes from.
func (p *player) wrap(err error) error {
	switch {
	case errors.As(err, new(*Difference)):
		return err
	case p.header == nil && errors.As(err, new(*json.SyntaxError)):
		return fmt.Errorf("trunk: recording: this is none: %w", err)
	case p.header == nil:
		return fmt.Errorf("trunk: recording: %w", err)
	case p.op == nil:
		return fmt.Errorf("trunk: recording %q: %w", string(p.header.Name), err)
	}
	return fmt.Errorf("trunk: recording %q: operation %d (%s): %w", string(p.header.Name), p.number, p.op.Op, err)
}

// playback is the source of the recorded random numbers.
type playback struct {
	numbers []uint64
	over    int // how many were drawn beyond them
}

// Uint64 implements rand.Source. Beyond what was recorded, which is a difference,
// it goes on with any numbers but always the same: who rejects one must come to
// an end.
func (s *playback) Uint64() uint64 {
	if len(s.numbers) == 0 {
		s.over++
		return uint64(s.over) * 0x9e3779b97f4a7c15
	}
	n := s.numbers[0]
	s.numbers = s.numbers[1:]
	return n
}

// begin makes the upstream.
func (p *player) begin(h *header) error {
	p.header, p.requests = h, map[int64]*peer.Request{}
	method, err := h.method(p.method)
	if err != nil {
		return err
	}
	servers, err := peerServers(h.Servers)
	if err != nil {
		return err
	}
	o, err := h.options()
	if err != nil {
		return err
	}
	p.source.numbers = h.StartDraws
	o.Clock, o.Source = func() time.Duration { return p.now }, &p.source
	if p.up, err = peer.New(servers, method, o); err != nil {
		return err
	}
	p.op = &operation{Op: "start"}
	defer func() { p.op = nil }()
	return p.check(len(h.StartDraws), true, h.Changed)
}

// step replays an operation and compares what came of it.
func (p *player) step(op *operation) error {
	if p.op != nil {
		p.number++
	}
	p.op = op
	p.source = playback{numbers: make([]uint64, len(op.Draws))}
	for i, n := range op.Draws {
		p.source.numbers[i] = uint64(n) << 33 // as Group.Draw takes it
	}
	if err := p.run(op); err != nil {
		return err
	}
	if err := p.check(len(op.Draws), op.Op == opUpdate, op.Changed); err != nil {
		return err
	}
	p.result.Operations++
	if p.each == nil {
		return nil
	}
	s := &Step{Recording: string(p.header.Name), Number: p.number, Op: op.Op, Request: op.ID, Time: wallTime(p.now), State: op.State}
	if op.Op == opGet {
		s.Decision = &p.decision
	}
	return p.each(s)
}

// check compares what an operation has drawn, and the states that it has left.
func (p *player) check(draws int, asNew bool, changed changes) error {
	p.same("number of draws", draws, draws-len(p.source.numbers)+p.source.over)
	if asNew {
		p.renew()
	}
	if err := p.expect(changed); err != nil {
		return err
	}
	for gi := range p.want {
		for i := range p.want[gi] {
			p.compare(at{gi, i}, p.want[gi][i], p.up.State(gi, i))
		}
	}
	if p.differing != nil {
		return p.differing
	}
	return nil
}

// renew expects all peers to be new.
func (p *player) renew() {
	set := p.up.Set()
	for gi := range p.want {
		p.want[gi] = make([]peer.State, set.Len(gi))
		for i := range p.want[gi] {
			p.want[gi][i] = peer.State{EffectiveWeight: int64(set.Server(gi, i).Weight)}
		}
	}
}

// expect notes what an operation is to have changed.
func (p *player) expect(changed changes) error {
	for name, to := range changed {
		var who at
		if _, err := fmt.Sscanf(name, "%d/%d", &who.group, &who.index); err != nil || !p.has(who) {
			return fmt.Errorf("no peer %q", name)
		}
		for f, n := range to {
			if fieldsByName[f] == nil {
				return fmt.Errorf("peer %s: no field %q", name, f)
			}
			fieldsByName[f].set(&p.want[who.group][who.index], int64(n))
		}
	}
	return nil
}

func (p *player) has(who at) bool {
	return who.group >= 0 && who.group < len(p.want) && who.index >= 0 && who.index < len(p.want[who.group])
}

// compare finds the fields in which a peer differs.
func (p *player) compare(who at, want, got peer.State) {
	if want == got {
		return
	}
	for i := range stateFields {
		p.same(fmt.Sprintf("peer %s: %s", who, stateFields[i].name), stateFields[i].get(&want), stateFields[i].get(&got))
	}
}
