package peer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
)

// Calls in a wrong order are returned errors, and change nothing: no state of
// any peer, not the tries, not the peer that is held.
func TestWrongOrder(t *testing.T) {
	type calls = func(u, other *peer.Upstream, r *peer.Request) error
	begin := func(u, _ *peer.Upstream, r *peer.Request) error { return u.Begin(r) }
	get := func(u, _ *peer.Upstream, r *peer.Request) error { return u.Get(r) }
	free := func(u, _ *peer.Upstream, r *peer.Request) error { return u.Free(r, peer.Failed) }
	header := func(u, _ *peer.Upstream, r *peer.Request) error { return u.Header(r) }
	connected := func(u, _ *peer.Upstream, r *peer.Request) error { return u.Connected(r) }
	firstByte := func(u, _ *peer.Upstream, r *peer.Request) error { return u.FirstByte(r) }
	elsewhere := func(do calls) calls {
		return func(u, other *peer.Upstream, r *peer.Request) error { return do(other, u, r) }
	}
	tests := []struct {
		name   string
		given  []calls
		call   calls
		refuse error
	}{
		{"get before begin", nil, get, peer.ErrNotBegun},
		{"free before begin", nil, free, peer.ErrNotBegun},
		{"header before begin", nil, header, peer.ErrNotBegun},
		{"free without get", []calls{begin}, free, peer.ErrNotHeld},
		{"header without get", []calls{begin}, header, peer.ErrNotHeld},
		{"connected without get", []calls{begin}, connected, peer.ErrNotHeld},
		{"first byte without get", []calls{begin}, firstByte, peer.ErrNotHeld},
		{"second free", []calls{begin, get, free}, free, peer.ErrNotHeld},
		{"second free after a retry", []calls{begin, get, free, get, free}, free, peer.ErrNotHeld},
		{"header after free", []calls{begin, get, free}, header, peer.ErrNotHeld},
		{"get while held", []calls{begin, get}, get, peer.ErrHeld},
		{"begin while held", []calls{begin, get}, begin, peer.ErrHeld},
		{"begin elsewhere while held", []calls{begin, get}, elsewhere(begin), peer.ErrHeld},
		{"get of a request begun elsewhere", []calls{begin}, elsewhere(get), peer.ErrNotBegun},
		{"free of a request held elsewhere", []calls{begin, get}, elsewhere(free), peer.ErrNotBegun},
		{"header of a request held elsewhere", []calls{begin, get}, elsewhere(header), peer.ErrNotBegun},
		{"free after begin elsewhere", []calls{begin, get, free, elsewhere(begin)}, free, peer.ErrNotBegun},
		{"unknown outcome", []calls{begin, get}, func(u, _ *peer.Upstream, r *peer.Request) error {
			return u.Free(r, peer.Abandoned+1)
		}, peer.ErrOutcome},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inflight := leasttime.Method{Inflight: true} // counts what is in flight, too
			u := machine.NewTrial(t, inflight, "a", "b", "c")
			other := machine.NewTrial(t, inflight, "a", "b", "c")
			var r peer.Request
			for _, call := range test.given {
				require.NoError(t, call(u.Upstream, other.Upstream, &r))
			}
			u.Advance(time.Minute)
			other.Advance(time.Minute)
			before, beforeOther, tries := u.States(), other.States(), r.Tries()
			held, holds := u.Peer(&r)

			require.ErrorIs(t, test.call(u.Upstream, other.Upstream, &r), test.refuse)

			require.Equal(t, before, u.States())
			require.Equal(t, beforeOther, other.States())
			require.Equal(t, tries, r.Tries())
			nowHeld, nowHolds := u.Peer(&r)
			require.Equal(t, held, nowHeld)
			require.Equal(t, holds, nowHolds)
			if holds {
				require.NoError(t, u.Free(&r, peer.OK), "what is held can still be freed")
			}
		})
	}
}

// A request can be used again and again, and starts each time with nothing.
func TestRequestIsReused(t *testing.T) {
	lb := machine.NewTrial(t, nil, "a max_fails=0", "b max_fails=0", "c backup max_fails=0")
	r := lb.Begin(nil)
	for range 3 {
		require.NoError(t, lb.Upstream.Begin(&r.Request))
		require.Equal(t, 3, r.Tries())
		tried := map[string]bool{}
		for name := r.Get(); name != machine.Busy; name = r.Get() {
			tried[name] = true
			r.Free(peer.Failed)
		}
		require.Len(t, tried, 3)
	}
}

// BUSY leaves the request as it is: it can get again, later.
func TestGetAfterBusy(t *testing.T) {
	lb := machine.NewTrial(t, nil, "a max_conns=1", "b down")
	holder, _ := lb.Hold()
	r := lb.Begin(nil)
	require.Equal(t, machine.Busy, r.Get())
	_, holds := lb.Peer(&r.Request)
	require.False(t, holds)
	holder.Free(peer.OK)
	require.Equal(t, "a", r.Get())
}

func TestOutcomeString(t *testing.T) {
	for o, want := range map[peer.Outcome]string{
		peer.OK: "OK", peer.Failed: "FAILED", peer.Next: "NEXT", peer.Abandoned: "ABANDONED", 7: "Outcome(7)",
	} {
		require.Equal(t, want, o.String())
	}
}

// What each outcome does to a peer that has failed once and is asked again
// after its fail timeout.
func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		outcome       peer.Outcome
		fails, weight int64
	}{
		{peer.OK, 0, 6},
		{peer.Next, 0, 6},
		{peer.Failed, 2, 1},
		{peer.Abandoned, 1, 6},
	} {
		t.Run(test.outcome.String(), func(t *testing.T) {
			lb := machine.NewTrial(t, nil, "a weight=10 max_fails=2", "b backup")
			require.Equal(t, "a", lb.One(peer.Failed, nil))
			lb.Advance(time.Minute)
			r, name := lb.Hold()
			require.Equal(t, "a", name)
			require.EqualValues(t, 1, lb.Of("a").Conns)
			r.Free(test.outcome)
			require.Equal(t, test.fails, lb.Of("a").Fails)
			require.Equal(t, test.weight, lb.Of("a").EffectiveWeight)
			require.Zero(t, lb.Of("a").Conns)
			require.Equal(t, 1, r.Tries())
		})
	}
}

// In stream a peer is live again when the connection stands, not at the end of
// the session; in http it is the answer that counts.
func TestConnected(t *testing.T) {
	for _, test := range []struct {
		name   string
		stream bool
		want   int64
	}{{"stream", true, 0}, {"http", false, 1}} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, nil, "a", "b backup")
			require.Equal(t, "a", lb.One(peer.Failed, nil))
			lb.Advance(11 * time.Second)
			r := lb.Begin(func(r *peer.Request) { r.Stream = test.stream })
			require.Equal(t, "a", r.Get())
			require.NoError(t, lb.Connected(&r.Request))
			require.Equal(t, test.want, lb.Of("a").Fails)
		})
	}
}
