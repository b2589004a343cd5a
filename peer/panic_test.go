package peer_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// faulty is a clock and a source that panic while it is set.
type faulty struct {
	clock, source bool
	random        rand.PCG
}

func (f *faulty) Now() time.Duration {
	if f.clock {
		panic("clock")
	}
	return 1_700_000_000 * time.Second
}

func (f *faulty) Uint64() uint64 {
	if f.source {
		panic("source")
	}
	return f.random.Uint64()
}

// A clock or a source that panics leaves the upstream as it was, and usable: the
// lock is not kept, and no request is counted that has not got a peer.
func TestPanicsLeaveTheUpstreamUsable(t *testing.T) {
	for _, test := range []struct {
		name string
		held bool // the request holds a peer
		set  func(*faulty)
		call func(*peer.Upstream, *peer.Request) error
	}{
		{"get, clock", false, func(f *faulty) { f.clock = true }, (*peer.Upstream).Get},
		{"get, source", false, func(f *faulty) { f.source = true }, (*peer.Upstream).Get},
		{"free, clock", true, func(f *faulty) { f.clock = true }, func(u *peer.Upstream, r *peer.Request) error {
			return u.Free(r, peer.Failed)
		}},
		{"header, clock", true, func(f *faulty) { f.clock = true }, (*peer.Upstream).Header},
		{"connected, clock", true, func(f *faulty) { f.clock = true }, (*peer.Upstream).Connected},
		{"first byte, clock", true, func(f *faulty) { f.clock = true }, (*peer.Upstream).FirstByte},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f faulty
			u, err := peer.New(machine.Servers(t, "a", "b", "c"), random.New(),
				&peer.Options{Clock: f.Now, Source: &f})
			require.NoError(t, err)
			var r peer.Request
			require.NoError(t, u.Begin(&r))
			if test.held {
				require.NoError(t, u.Get(&r))
			}
			before := statesOf(u)

			test.set(&f)
			require.Panics(t, func() { _ = test.call(u, &r) })
			f.clock, f.source = false, false

			require.Equal(t, before, statesOf(u), "nothing has changed")
			_, holds := u.Peer(&r)
			require.Equal(t, test.held, holds)
			require.NoError(t, test.call(u, &r), "the same call again")
		})
	}
}

func statesOf(u *peer.Upstream) []peer.State {
	var list []peer.State
	for i := range u.Set().Len(peer.Primary) {
		list = append(list, u.State(peer.Primary, i))
	}
	return list
}
