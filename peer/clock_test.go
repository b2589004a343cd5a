package peer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
)

// Without options all works inside testing/synctest: the default clock is the
// bubble's.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := peer.New(machine.Servers(t, "a", "b backup"), nil, nil)
		require.NoError(t, err)
		started := time.Now()
		one := func(o peer.Outcome) string {
			var r peer.Request
			require.NoError(t, u.Begin(&r))
			require.NoError(t, u.Get(&r))
			p, _ := u.Peer(&r)
			require.NoError(t, u.Free(&r, o))
			return p.Server.Addr
		}
		require.Equal(t, "a", one(peer.Failed))
		require.Equal(t, started.Unix(), u.State(peer.Primary, 0).Accessed, "in seconds since the epoch")

		<-time.After(10 * time.Second)
		require.Equal(t, "b", one(peer.OK), "10 s later")
		<-time.After(time.Second)
		require.Equal(t, "a", one(peer.OK), "11 s later")
		require.Equal(t, started.Add(11*time.Second).Unix(), u.State(peer.Primary, 0).Checked)
	})
}

// checked starts at 0, so a peer looks as if it had been checked at the epoch.
// A clock that starts near 0 therefore shows what nginx would show in 1970.
func TestClockNearTheEpoch(t *testing.T) {
	for _, test := range []struct {
		now     time.Duration
		checked int64 // after the first get
	}{
		{0, 0},
		{5 * time.Second, 0},
		{10 * time.Second, 0},
		{11 * time.Second, 11},
		{1_700_000_000 * time.Second, 1_700_000_000},
	} {
		t.Run(fmt.Sprintf("first get at %v", test.now), func(t *testing.T) {
			lb := machine.NewTrial(t, nil, "a fail_timeout=10s", "b backup")
			lb.SetClock(test.now)
			_, name := lb.Hold()
			require.Equal(t, "a", name)
			require.Equal(t, test.checked, lb.Of("a").Checked)
		})
	}
	t.Run("a failure at 0 is not forgotten before 11", func(t *testing.T) {
		lb := machine.NewTrial(t, nil, "a max_fails=2", "b backup")
		lb.SetClock(0)
		require.Equal(t, "a", lb.One(peer.Failed, nil))
		lb.SetClock(10 * time.Second)
		require.Equal(t, "a", lb.One(peer.OK, nil))
		require.EqualValues(t, 1, lb.Of("a").Fails)
		lb.SetClock(11 * time.Second)
		require.Equal(t, "a", lb.One(peer.OK, nil))
		require.Zero(t, lb.Of("a").Fails)
	})
}

// With a finer resolution a fail timeout may be finer, and failures are timed
// in its ticks.
func TestResolution(t *testing.T) {
	now := 1_700_000_000 * time.Second
	u, err := peer.New([]peer.Server{{Addr: "a", FailTimeout: 300 * time.Millisecond}, {Addr: "b", Backup: true}}, nil,
		&peer.Options{Resolution: 100 * time.Millisecond, Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	one := func(o peer.Outcome) string {
		var r peer.Request
		require.NoError(t, u.Begin(&r))
		require.NoError(t, u.Get(&r))
		p, _ := u.Peer(&r)
		require.NoError(t, u.Free(&r, o))
		return p.Server.Addr
	}
	require.Equal(t, "a", one(peer.Failed))
	require.Equal(t, int64(17_000_000_000), u.State(peer.Primary, 0).Accessed, "in ticks since the epoch")
	now += 399 * time.Millisecond
	require.Equal(t, "b", one(peer.OK))
	now += time.Millisecond
	require.Equal(t, "a", one(peer.OK))
}

// nginx's fail_timeout=0: out until the clock shows another second.
func TestNoFailTimeout(t *testing.T) {
	lb := machine.NewTrial(t, nil, "a fail_timeout=0s", "b backup")
	require.Equal(t, "a", lb.One(peer.Failed, nil))
	require.Equal(t, "b", lb.Picks(1))
	lb.Advance(time.Second)
	require.Equal(t, "a", lb.Picks(1))
}

// The clock is read before the lock is taken. Where another request is quicker and uses a
// later time, it is read again: times do not go back because of that.
func TestTimesAreInTheOrderOfTheLock(t *testing.T) {
	now, between := time.Hour, func() {}
	u, err := peer.New(many(2), nil, &peer.Options{Clock: func() time.Duration {
		read := now
		between()
		return read
	}})
	require.NoError(t, err)
	var slow, quick peer.Decision
	between = func() {
		between = func() {}
		now += time.Second
		require.NoError(t, u.Explain(begun(t, u), &quick))
	}
	require.NoError(t, u.Explain(begun(t, u), &slow))
	require.Equal(t, quick.Time, slow.Time)
	now -= time.Minute
	require.NoError(t, u.Explain(begun(t, u), &slow))
	require.Equal(t, quick.Time.Add(-time.Minute), slow.Time, "a clock that goes back is believed")
}

// A panic of the clock that is read again under the lock keeps nothing locked.
func TestPanicOfTheSecondReading(t *testing.T) {
	now, between := time.Hour, func() {}
	u, err := peer.New(many(2), nil, &peer.Options{Clock: func() time.Duration {
		read := now
		between()
		return read
	}})
	require.NoError(t, err)
	between = func() {
		between = func() {}
		now += time.Second
		require.NoError(t, u.Get(begun(t, u)))
		between = func() { panic("clock") }
	}
	r := begun(t, u)
	require.Panics(t, func() { _ = u.Get(r) })
	between = func() {}
	require.NoError(t, u.Get(r))
}

// begun is a new request of an upstream.
func begun(t *testing.T, u *peer.Upstream) *peer.Request {
	r := &peer.Request{}
	require.NoError(t, u.Begin(r))
	return r
}
