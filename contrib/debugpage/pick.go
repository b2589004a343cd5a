package debugpage

import (
	"slices"
	"strings"

	"github.com/trunklb/trunk/peer"
)

// pick is a decision as it is kept: a copy, within bounds.
type pick struct {
	seq uint64 // counts the panel's decisions, from 1
	peer.Decision
	leftOut int // peers for which there was no room
}

// keep makes k a copy of d with at most most peers, in k's own memory.
func (k *pick) keep(seq uint64, d *peer.Decision, most int) {
	peers := k.Peers[:0]
	*k = pick{seq: seq, Decision: *d, leftOut: max(0, len(d.Peers)-most)}
	// What a request brought is often a part of something longer, which must
	// not be kept alive by it.
	k.Key, k.Client, k.Hint = strings.Clone(clip(d.Key)), clip(d.Client), strings.Clone(clip(d.Hint))
	k.Winner = peer.None
	wanted := k.wanted(d, most)
	for n := range d.Peers {
		if !wanted(n) {
			continue
		}
		if n == d.Winner {
			k.Winner = len(peers)
		}
		c := d.Peers[n]
		c.Addr, c.Name, c.Detail = clip(c.Addr), clip(c.Name), clip(c.Detail)
		peers = append(peers, c)
	}
	k.Peers = peers
}

// wanted returns which peers of d are kept, to be asked in their order: the
// winner, as many in trouble as there is room for, and others in what remains.
func (k *pick) wanted(d *peer.Decision, most int) func(n int) bool {
	if k.leftOut == 0 {
		return func(int) bool { return true }
	}
	room, troubled := most, 0
	for n := range d.Peers {
		switch {
		case n == d.Winner:
			room--
		case inTrouble(&d.Peers[n]):
			troubled++
		}
	}
	troubled = min(troubled, room)
	calm := room - troubled
	return func(n int) bool {
		left := &calm
		switch {
		case n == d.Winner:
			return true
		case inTrouble(&d.Peers[n]):
			left = &troubled
		}
		*left--
		return *left >= 0
	}
}

func inTrouble(c *peer.Candidate) bool {
	return c.Verdict == peer.FailedOut || c.Verdict == peer.Full || c.EffectiveAfter < c.Weight || c.Fails > 0
}

// copied returns a copy that shares no memory with k.
func (k *pick) copied() pick {
	c := *k
	c.Peers = slices.Clone(k.Peers)
	return c
}

// winner returns the peer that was taken; nil: none.
func (k *pick) winner() *peer.Candidate {
	if k.Winner < 0 || k.Winner >= len(k.Peers) {
		return nil
	}
	return &k.Peers[k.Winner]
}
