package balancertest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/peer"
)

// NoPeer is in place of a peer, in WantPicks and from Pick, where none is available.
const NoPeer = "-"

// Pick sends one request, which its peer answers at once, and returns the peer's
// name; NoPeer if there is no live peer.
func (lb *LB) Pick() string {
	lb.t.Helper()
	name, try := lb.get()
	end(try, nil)
	return name
}

// Decision returns how the last choice of the upstream was decided, be it a pick or
// a request through RoundTripper; nil before the first, and where the
// configuration has an Explain of its own.
func (lb *LB) Decision() *peer.Decision { return lb.decisions.last() }

// Fail lets a peer fail once: requests are sent until one goes to it, which is
// refused; the others are answered at once. If the peer is not chosen within the
// picks in which it should have been, the test ends.
func (lb *LB) Fail(name string) {
	lb.t.Helper()
	end(lb.until("Fail", lb.known(name)), Refused)
}

// Hold lets a peer hold a request: requests are sent until one goes to it, which
// it holds until release is called, or the test ends; the others are answered
// at once. It is what least_conn and max_conns look at.
func (lb *LB) Hold(name string) (release func()) {
	lb.t.Helper()
	try := lb.until("Hold", lb.known(name))
	lb.held[try] = true
	return func() {
		if lb.held[try] {
			delete(lb.held, try)
			end(try, nil)
		}
	}
}

// Recover lets a peer that has failed answer again: the clock moves to where
// its failures may be forgotten, fail_timeout after the last, and requests are
// sent, and answered at once, until it has answered one. What the failures have
// cost it of its effective weight then comes back as nginx has it, by further
// picks. A peer without failures is left as it is.
func (lb *LB) Recover(name string) {
	lb.t.Helper()
	name = lb.known(name)
	for range lb.patience() {
		wait, failed := lb.penance(name)
		if !failed {
			return
		}
		if wait > 0 {
			lb.Advance(wait)
		}
		lb.Pick()
	}
	lb.t.Fatalf("balancertest: Recover: %s does not come back; the last pick was decided so:\n%s", name, lb.why())
}

// penance returns how long it takes until a peer's failures may be forgotten, and
// whether it has any.
func (k *kit) penance(name string) (wait time.Duration, failed bool) {
	k.t.Helper()
	unit := k.resolution()
	for _, s := range k.up.Snapshot().Peers {
		if nameOf(s.Server) != name || s.Fails == 0 {
			continue
		}
		if s.Server.FailTimeout > math.MaxInt64/4 {
			k.t.Fatalf("balancertest: Recover: the fail_timeout of %s never ends", name)
		}
		failed = true
		back := time.Duration(s.Checked+1)*unit + s.Server.FailTimeout
		wait = max(wait, back-k.config.Clock())
	}
	return wait, failed
}

// until sends requests until the peer is chosen, and returns that one.
func (lb *LB) until(what, name string) *balancer.Try {
	lb.t.Helper()
	n := lb.patience()
	for range n {
		got, try := lb.get()
		if got == name {
			return try
		}
		end(try, nil)
	}
	lb.t.Fatalf("balancertest: %s: %s was not chosen in %d picks; the last was decided so:\n%s", what, name, n, lb.why())
	return nil
}

// patience is the number of picks in which every peer that can be chosen
// should have been: many rounds, even if it is in debt.
func (k *kit) patience() int {
	n := 1000
	for _, s := range k.up.Snapshot().Peers {
		n = min(n+20*s.Server.Weight, 1_000_000)
	}
	return n
}

// resolution is the unit of the upstream's clock.
func (k *kit) resolution() time.Duration { return cmp.Or(k.config.Resolution, time.Second) }

// get sends a request. The Try is nil if there is no live peer.
func (lb *LB) get() (string, *balancer.Try) {
	lb.t.Helper()
	try := lb.up.Start(context.Background(), lb.input())
	if !try.Next() {
		if err := try.Err(); !errors.Is(err, balancer.ErrNoLivePeers) {
			lb.t.Fatalf("balancertest: %v", err)
		}
		return NoPeer, nil
	}
	return nameOf(try.Peer().Server), try
}

// end ends a request, if there is one.
func end(try *balancer.Try, err error) {
	if try == nil {
		return
	}
	try.Done(err)
	try.Close()
}
