package balancertest

import (
	"fmt"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/roundrobin"
)

// methodName returns a method in nginx's words.
func methodName(m peer.Method) string { return fmt.Sprint(m) }

// decision makes the record of the request that was sent last, out of the peers'
// state before and now, while it is held. Peers are called as the user called them.
func (k *kit) decision(in balancer.Input, before []balancer.PeerState) *peer.Decision {
	d := &peer.Decision{Time: k.config.Clock(), Method: k.method, Key: in.Key, Hint: in.Hint, Try: 1, Winner: -1}
	if in.Client.IsValid() {
		d.Client = in.Client.String()
	}
	moved := false
	for i, now := range k.up.State() {
		if i >= len(before) || now.Group > peer.Backup {
			break // those that have left the set take no part
		}
		c := k.candidate(before[i], now)
		if c.Verdict != peer.Down && c.Verdict != peer.Draining {
			d.TriesLeft++
		}
		moved = moved || c.CurrentAfter != c.CurrentBefore || c.EffectiveAfter != c.EffectiveBefore
		if now.Conns > before[i].Conns && d.Winner < 0 {
			d.Winner = i
			d.Total = c.CurrentBefore + c.EffectiveBefore - c.CurrentAfter
		}
		d.Peers = append(d.Peers, c)
	}
	if t := k.config.Retry.Tries; t > 0 {
		d.TriesLeft = min(d.TriesLeft, t)
	}
	if d.Winner >= 0 && d.Peers[d.Winner].Group == peer.Primary {
		d.Peers = primaries(d.Peers) // the backups were not asked
	}
	k.rule(d, moved, before)
	if !moved && d.Rule != peer.GreatestWeight {
		d.Total = 0 // nobody has paid; a lone peer of round robin pays itself
	}
	return d
}

func (k *kit) candidate(before, now balancer.PeerState) peer.Candidate {
	s := before.Server
	c := peer.Candidate{Addr: nameOf(s), Group: before.Group, Index: before.Index, Weight: int64(s.Weight),
		Conns: before.Conns, MaxConns: int64(s.MaxConns), Fails: before.Fails, MaxFails: int64(s.MaxFails),
		CurrentBefore: before.CurrentWeight, CurrentAfter: now.CurrentWeight,
		EffectiveBefore: before.EffectiveWeight, EffectiveAfter: now.EffectiveWeight}
	unit := k.resolution()
	tick, timeout := int64(k.config.Clock()/unit), int64(s.FailTimeout/unit)
	switch {
	case s.Drain:
		c.Verdict = peer.Draining
	case s.Down:
		c.Verdict = peer.Down
	case s.MaxFails > 0 && before.Fails >= int64(s.MaxFails) && tick-before.Checked <= timeout:
		c.Verdict = peer.FailedOut
		c.Probe = time.Duration(before.Checked+timeout+1)*unit - k.config.Clock()
	case s.MaxConns > 0 && before.Conns >= int64(s.MaxConns):
		c.Verdict = peer.Full
	}
	return c
}

func primaries(all []peer.Candidate) []peer.Candidate {
	for i, c := range all {
		if c.Group != peer.Primary {
			return all[:i]
		}
	}
	return all
}

// rule finds the rule that must have decided, by the method and by whether the
// trunk's account has moved.
func (k *kit) rule(d *peer.Decision, moved bool, before []balancer.PeerState) {
	if d.Winner < 0 {
		return
	}
	if len(before) == 1 {
		d.Rule = peer.OnlyPeer
		return
	}
	tie := func(alone peer.Rule) peer.Rule {
		if moved {
			return peer.TieByTrunk
		}
		return alone
	}
	own := peer.Undecided
	switch m := k.config.Method.(type) {
	case nil, roundrobin.Method:
		d.Rule = peer.GreatestWeight
		return
	case leastconn.Method:
		d.Rule = tie(peer.LeastConns)
		return
	case leasttime.Method:
		d.Rule = tie(peer.LeastTime)
		return
	case hash.Method:
		if own = peer.HashRange; m.Consistent {
			d.Rule = peer.RingPoint
			return
		}
	case iphash.Method:
		own = peer.AddressHash
	case random.Method:
		if own = peer.Drawn; m.Two {
			own = peer.LessOfTwo
		}
	}
	if d.Rule = own; moved {
		d.Rule, d.RoundRobin = peer.GreatestWeight, true
	}
}
