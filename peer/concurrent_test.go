package peer_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/sticky"
)

// Many goroutines share an upstream, with either engine. The source needs no lock of its
// own, since it runs inside the upstream's. At the end all counts are back at zero.
func TestConcurrentUse(t *testing.T) {
	scan := engine.ScanMost
	defer func() { engine.ScanMost = scan }()
	for name, most := range map[string]int{"scan": scan, "queues": 0} {
		engine.ScanMost = most
		t.Run(name, func(t *testing.T) { eachMethod(t, useAtOnce) })
	}
}

func useAtOnce(t *testing.T, m peer.Method) {
	var ticks atomic.Int64
	u, err := peer.New(machine.Servers(t, "a weight=5", "b max_conns=3", "c max_fails=0", "d down", "e backup"), m,
		&peer.Options{
			Clock: func() time.Duration {
				return 1_700_000_000*time.Second + time.Duration(ticks.Add(1))*100*time.Millisecond
			},
			Source: rand.NewPCG(1, 2),
		})
	require.NoError(t, err)

	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(g)))
			var r peer.Request
			keyed(&r)
			for range 100 {
				if !useOnce(t, u, &r, random) {
					return
				}
			}
		})
	}
	all.Wait()

	for group := range 2 {
		for i := range u.Set().Len(group) {
			s := u.State(group, i)
			require.Zero(t, s.Conns, "conns of peer %d of group %d", i, group)
			require.Zero(t, s.Times.InflightReqs, "in flight at peer %d of group %d", i, group)
		}
	}
}

// useOnce makes a request with retries. It reports false where a call that must
// succeed did not.
func useOnce(t *testing.T, u *peer.Upstream, r *peer.Request, random *rand.Rand) bool {
	if err := u.Begin(r); err != nil {
		t.Error(err)
		return false
	}
	for u.Get(r) == nil {
		p, ok := u.Peer(r)
		o := peer.Outcome(random.IntN(int(peer.Abandoned) + 1))
		if !ok || u.State(p.Group, p.Index).Conns < 1 || u.Header(r) != nil || u.Free(r, o) != nil {
			t.Error("a request that holds a peer was refused")
			return false
		}
		if o == peer.OK {
			break
		}
	}
	return true
}

// A free that is OK takes no lock, but where a pick compares what the peers hold: the
// counts stand still while it looks.
func TestFreesWaitForPicksThatCompare(t *testing.T) {
	for name, method := range map[string]peer.Method{
		"least_conn":              leastconn.New(),
		"least_time":              leasttime.New(leasttime.Header),
		"random two":              random.NewTwo(),
		"random two, KeepWeights": random.Method{Two: true, KeepWeights: true},
		"sticky over least_conn":  sticky.Over(leastconn.New()),
	} {
		t.Run(name, func(t *testing.T) {
			during := func() {}
			u, err := peer.New(many(3), beforePick{method, &during}, nil)
			require.NoError(t, err)
			var held, r peer.Request
			require.NoError(t, u.Begin(&held))
			require.NoError(t, u.Get(&held))

			freed, early := make(chan error, 1), false
			during = func() {
				during = func() {}
				go func() { freed <- u.Free(&held, peer.OK) }()
				select {
				case err := <-freed:
					early = true
					freed <- err
				case <-time.After(20 * time.Millisecond):
				}
			}
			require.NoError(t, u.Begin(&r))
			require.NoError(t, u.Get(&r))
			require.NoError(t, <-freed)
			require.False(t, early)
		})
	}
}

// beforePick is a method before whose picks something is done, under the lock.
type beforePick struct {
	peer.Method
	do *func()
}

func (m beforePick) Build(set *peer.Set) (peer.Selector, error) {
	s, err := m.Method.Build(set)
	pick := s.Pick
	s.Pick = func(g *peer.Group, r *peer.Request, now peer.Now) int {
		(*m.do)()
		return pick(g, r, now)
	}
	return s, err
}
