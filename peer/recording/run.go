package recording

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/peer"
)

// run does an operation again, and compares its answer.
func (p *player) run(op *operation) error {
	switch op.Op {
	case opTime:
		now, err := op.clock(p.header.Version)
		p.now = now
		return err
	case opUpdate:
		servers, err := peerServers(op.Servers)
		if err != nil {
			return err
		}
		return p.up.Update(servers)
	case opSessions:
		return nil // of sticky learn; hints come of them
	case opRequest:
		return p.request(op)
	}
	r := p.requests[op.ID]
	if r == nil {
		return fmt.Errorf("no request %d", op.ID)
	}
	if err := p.given(r, op); err != nil {
		return err
	}
	switch op.Op {
	case opGet:
		return p.get(r, op)
	case opNotify:
		if op.What == "connect" {
			return p.up.Connected(r)
		}
		return p.up.FirstByte(r)
	case opHeader:
		if op.Told != nil && !*op.Told {
			return nil
		}
		return p.up.Header(r)
	case opNext, opFin:
		return p.free(r, op)
	}
	return errors.New("no such operation")
}

func (p *player) request(op *operation) error {
	delete(p.requests, op.Over)
	r := &peer.Request{MaxTries: op.TriesCap}
	if p.header.Version == 0 {
		// nginx's have what is the same for all requests in the header, or not
		// at all.
		r.Client, r.Stream = netip.AddrFrom4([4]byte{127, 0, 0, 1}), p.header.Proto == "stream"
	}
	if err := p.given(r, op); err != nil {
		return err
	}
	if err := p.up.Begin(r); err != nil {
		return err
	}
	p.requests[op.ID] = r
	p.same("tries", op.Tries, r.Tries())
	return nil
}

// maxGivenBack bounds the work of a file that was tampered with.
const maxGivenBack = 1 << 20

// given lets the request bring what it brought.
func (p *player) given(r *peer.Request, op *operation) error {
	if op.Key != nil {
		r.Key = string(*op.Key)
	}
	if op.Hint != nil {
		r.Hint = string(*op.Hint)
	}
	if op.Stream != nil {
		r.Stream = *op.Stream
	}
	if op.BackupTry != nil {
		r.BackupTry = *op.BackupTry
	}
	if op.GaveBack < 0 || op.GaveBack > maxGivenBack {
		return fmt.Errorf("gave_back %d is out of range", op.GaveBack)
	}
	for range op.GaveBack {
		p.up.Internal(glue.Key{}).GiveBackTry(r)
	}
	if op.IP == nil {
		return nil
	}
	r.Client = netip.Addr{}
	if *op.IP == noClient {
		return nil
	}
	client, err := netip.ParseAddr(*op.IP)
	if err != nil && p.header.Redacted {
		return nil // what hides an address need not be one
	}
	r.Client = client
	return err
}

func (p *player) get(r *peer.Request, op *operation) error {
	err := p.up.Explain(r, &p.decision)
	if err != nil && !errors.Is(err, peer.ErrNoLivePeers) {
		return err
	}
	recorded, replayed := "none", "none"
	if op.Peer != nil {
		recorded = at{op.Peer[0], op.Peer[1]}.String()
	}
	if got, ok := p.up.Peer(r); ok {
		replayed = at{got.Group, got.Index}.String()
	}
	p.same("peer", recorded, replayed)
	p.same("tries", op.Tries, r.Tries())
	p.result.Gets++
	return nil
}

var outcomes = map[string]peer.Outcome{
	"OK": peer.OK, "FAILED": peer.Failed, "NEXT": peer.Next, "ABANDONED": peer.Abandoned,
}

func (p *player) free(r *peer.Request, op *operation) error {
	o, ok := outcomes[op.State]
	if !ok {
		return fmt.Errorf("no such state: %q", op.State)
	}
	err := p.up.Free(r, o)
	if err != nil && !errors.Is(err, peer.ErrNotHeld) {
		return err
	}
	p.same("freed", op.Freed, err == nil)
	p.same("tries", op.Tries, r.Tries())
	return nil
}
