package peer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Where the queues keep a peer through all that can happen to it: only what may take part
// in a pick, and gains something else than its weight, is looked at one by one.
func TestWhereTheQueuesKeepAPeer(t *testing.T) {
	now := window * 1000
	var servers []Server
	for i := range 6 {
		servers = append(servers, Server{Addr: fmt.Sprint(i), Weight: 2, FailTimeout: window, MaxConns: 2})
	}
	servers[5].Down = true
	u, err := New(servers, nil, &Options{Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	g := &u.groups[Primary]
	keeps := func(i int, want where, why string) {
		t.Helper()
		require.Equal(t, want, g.queues.links[i].where, why)
	}
	// hold gives peer i to a request; those that get others free them.
	hold := func(i int32) *Request {
		for range 100 {
			r := begun(t, u)
			require.NoError(t, u.Get(r))
			if r.slot == i {
				return r
			}
			require.NoError(t, u.Free(r, OK))
		}
		t.Fatal("never picked")
		return nil
	}
	keeps(0, aside, "new, until the first pick")
	keeps(5, away, "down")

	first := hold(0)
	keeps(0, inList, "settled")

	require.NoError(t, u.Free(hold(1), Failed))
	keeps(1, aside, "it has failed")
	hold(2)
	keeps(1, sleeping, "it is in its fail window")
	require.Empty(t, g.queues.aside, "a pick looks at no peer that it cannot take")

	retried := hold(3)
	require.NoError(t, u.Free(retried, Next))
	require.NoError(t, u.Get(retried))
	keeps(3, aside, "the request has tried it")
	second := hold(0)
	keeps(3, inList, "other requests may have it")
	keeps(0, aside, "it is full")
	require.NoError(t, u.Free(hold(4), OK))
	keeps(0, away, "it is full, and no pick looks at it")
	require.NoError(t, u.Free(second, OK))
	keeps(0, aside, "it is not full any more")
	require.NoError(t, u.Free(hold(4), OK))
	keeps(0, inList, "settled again")
	require.NoError(t, u.Free(first, OK))

	now += window + time.Second
	probe := hold(1)
	keeps(1, aside, "its window is over, and its weight is not whole")
	require.NoError(t, u.Free(probe, OK))
	require.Zero(t, g.peers[1].load.fails())
	hold(4)
	keeps(1, inList, "it has answered, and its weight is whole")
}

// A peer that belongs far from the end of its queue is in the heap beside it, and is picked
// in its turn all the same.
func TestHeapBesideTheQueue(t *testing.T) {
	now := window * 1000
	var servers []Server
	for i := range 20 {
		servers = append(servers, Server{Addr: fmt.Sprint(i)})
	}
	u, err := New(servers, nil, &Options{Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	g := &u.groups[Primary]
	r := begun(t, u)
	require.NoError(t, u.Get(r))
	require.NoError(t, u.Free(r, OK))
	q := g.queues
	q.setAside(g, 7)
	require.NoError(t, u.Begin(r))
	require.NoError(t, u.Get(r))
	require.NoError(t, u.Free(r, OK))
	require.Equal(t, int32(1), r.slot)
	require.Equal(t, inHeap, q.links[7].where)
	for i := int32(2); i < 20; i++ {
		require.NoError(t, u.Begin(r))
		require.NoError(t, u.Get(r))
		require.NoError(t, u.Free(r, OK))
		require.Equal(t, i, r.slot)
	}
	require.Equal(t, inList, q.links[7].where, "it belongs at the end when it has paid")
}
