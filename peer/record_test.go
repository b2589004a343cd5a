package peer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/internal/oplog"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/sticky"
)

type (
	origin    = oplog.Origin[peer.Method, peer.Policy, *peer.Set, peer.State]
	operation = oplog.Operation[*peer.Set, peer.State]
)

// notes is a Recorder that keeps what it is told.
type notes struct {
	origin origin
	ops    []operation
	at     atomic.Int32 // how many are in Record
	fail   error        // of the next Record
}

func (n *notes) Start(o origin) error {
	n.origin = o
	return n.fail
}

func (n *notes) Record(ops []operation) error {
	if n.at.Add(1) != 1 {
		return errors.New("two at a time")
	}
	defer n.at.Add(-1)
	for _, op := range ops {
		op.Changed, op.Draws = slices.Clone(op.Changed), slices.Clone(op.Draws)
		n.ops = append(n.ops, op)
	}
	return n.fail
}

func TestWhatARecorderIsTold(t *testing.T) {
	n := &notes{}
	policy := peer.Policy{Penalty: .5}
	u := newUpdatable(t, sticky.Over(random.New()), peer.Options{Record: n, Policy: policy, RandomStart: true, Source: rand.NewPCG(1, 2)},
		peer.Server{Addr: "a", Weight: 3}, peer.Server{Addr: "b", Weight: 2})
	require.Equal(t, policy, n.origin.Policy)
	require.Equal(t, time.Second, n.origin.Resolution)
	require.True(t, n.origin.Binds)
	require.True(t, n.origin.RandomStart)
	require.NotEmpty(t, n.origin.Draws)
	require.Same(t, u.Set(), n.origin.Set)

	r := &peer.Request{Key: "k", MaxTries: 2}
	require.NoError(t, u.Begin(r))
	r.Hint = u.Set().SID(peer.Primary, 1)
	require.Equal(t, "b", u.get(r))
	u.now += 1500 * time.Millisecond
	require.NoError(t, u.Header(r))
	require.NoError(t, u.Free(r, peer.Failed))
	u.Internal(glue.Key{}).GiveBackTry(r)
	require.Equal(t, "a", u.get(r))
	require.NoError(t, u.Free(r, peer.OK))
	require.NoError(t, u.Begin(r))
	u.update(peer.Server{Addr: "b"})
	u.update(peer.Server{Addr: "b"}) // the same again is nothing

	var told []string
	for _, op := range n.ops {
		told = append(told, fmt.Sprint(op.Kind, op.Request, op.Over, " ", op.Given.Hint != op.Was.Hint, op.Tries, op.GaveBack,
			" ", len(op.Draws) > 0, op.Index, peer.Outcome(op.Outcome), op.Since, len(op.Changed) > 0))
	}
	require.Equal(t, []string{
		"0 1 0 false 2 0 false 0 OK 0 false",
		"1 1 0 true 2 0 false 1 OK 0 true",
		"4 1 0 false 2 0 false 0 OK 1500 false",
		"5 1 0 false 1 0 false 0 FAILED 1500 true",
		"1 1 0 false 2 1 true 0 OK 0 true",
		"5 1 0 false 1 0 false 0 OK 0 true",
		"0 2 1 true 2 0 false 0 OK 0 false",
		"6 0 0 false 0 0 false 0 OK 0 true",
	}, told)
	last := n.ops[len(n.ops)-1]
	require.Same(t, u.Set(), last.Set)
	require.Equal(t, peer.State{EffectiveWeight: 1}, last.Changed[0].Was, "as new")
	require.Equal(t, u.State(peer.Primary, 0), last.Changed[0].Is)
	require.NoError(t, n.origin.Flush())
}

func TestARecorderThatRefuses(t *testing.T) {
	n := &notes{fail: errors.New("no")}
	_, err := peer.New([]peer.Server{{Addr: "a"}}, nil, &peer.Options{Record: n})
	require.ErrorIs(t, err, n.fail, "at once")

	n = &notes{}
	u := newUpdatable(t, nil, peer.Options{Record: n}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	require.Equal(t, "a", u.picks(1))
	require.Len(t, n.ops, 3)
	n.fail = errors.New("later")
	require.Equal(t, "b a b", u.picks(3))
	require.Len(t, n.ops, 4, "it is not asked again")
	require.ErrorIs(t, n.origin.Flush(), n.fail)
}

// What goroutines do at the same time is told once, in the order of the lock, by
// one of them at a time.
func TestRecordingAtOnce(t *testing.T) {
	n := &notes{}
	u, err := peer.New(machine.Servers(t, "a weight=3", "b", "c"), nil, &peer.Options{Record: n})
	require.NoError(t, err)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for range 50 {
				var r peer.Request
				if !useOnce(t, u, &r, rand.New(rand.NewPCG(1, uint64(g)))) {
					return
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, n.origin.Flush())
	begun, conns := uint64(0), map[int]int64{}
	for _, op := range n.ops {
		if op.Kind == oplog.Begin {
			begun++
			require.Equal(t, begun, op.Request)
		}
		for _, c := range op.Changed {
			require.Equal(t, conns[c.Index], c.Was.Conns)
			conns[c.Index] = c.Is.Conns
		}
	}
	require.EqualValues(t, 8*50, begun)
	require.Equal(t, map[int]int64{0: 0, 1: 0, 2: 0}, conns)
}

// nobody is a Recorder that does nothing with what it is told.
type nobody struct{}

func (nobody) Start(origin) error       { return nil }
func (nobody) Record([]operation) error { return nil }

// BenchmarkRecording compares a get and free without a record, and with one that
// nobody writes.
func BenchmarkRecording(b *testing.B) {
	for _, size := range []int{3, 100} {
		for name, to := range map[string]oplog.Recorder[peer.Method, peer.Policy, *peer.Set, peer.State]{"off": nil, "on": nobody{}} {
			b.Run(fmt.Sprintf("n=%d/%s", size, name), func(b *testing.B) {
				u, err := peer.New(many(size), nil, &peer.Options{Record: to,
					Clock: func() time.Duration { return 1_700_000_000 * time.Second }})
				require.NoError(b, err)
				var r peer.Request
				b.ReportAllocs()
				for b.Loop() {
					if u.Begin(&r) != nil || u.Get(&r) != nil || u.Free(&r, peer.OK) != nil {
						b.Fatal("refused")
					}
				}
			})
		}
	}
}
