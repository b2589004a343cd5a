package peer

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/engine"
)

// Every state that a small group can reach is walked breadth first, with both
// engines side by side: n up to 4 peers of weights up to 4, max_fails up to 2,
// one retry, time standing still or passing the fail window. Whatever a request
// does next, both must pick the same peer and be in the same state after it. Beside the
// queues with their history there are in each state queues that are new there.
//
// TRUNK_EXHAUSTIVE=1 walks all of it in about an hour, n = 4 in one order of each list of
// weights; otherwise the groups have at most four units of weight, with -short three.
func TestExhaustiveEnginesAgree(t *testing.T) {
	all := os.Getenv("TRUNK_EXHAUSTIVE") != ""
	scanMost, maxSteps := engine.ScanMost, engine.MaxSteps
	t.Cleanup(func() { engine.ScanMost, engine.MaxSteps = scanMost, maxSteps })
	// Most of what is made here is garbage at once.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	most := 4
	if testing.Short() {
		most = 3
	}
	states, steps := 0, 0
	for _, weights := range everyWeights(4, 4) {
		sum := 0
		for _, w := range weights {
			sum += w
		}
		if !all && sum > most || len(weights) == 4 && !slices.IsSorted(weights) {
			continue
		}
		for maxFails := range 3 {
			s, k := walk(t, weights, maxFails)
			states, steps = states+s, steps+k
		}
		if all {
			t.Logf("%v: %d states, %d steps so far", weights, states, steps)
		}
	}
	t.Logf("%d states, %d steps", states, steps)
}

// everyWeights returns every list of 1 to n weights from 1 to most.
func everyWeights(n, most int) (lists [][]int) {
	lists = [][]int{{}}
	for i := 0; len(lists[i]) < n; i++ {
		for w := 1; w <= most; w++ {
			lists = append(lists, append(slices.Clone(lists[i]), w))
		}
	}
	return lists[1:]
}

const window = 10 * time.Second

// small is one small upstream that can be copied.
type small struct {
	*Upstream
	now *time.Duration
}

func newSmall(t *testing.T, weights []int, maxFails, scanMost int) small {
	engine.ScanMost = scanMost
	now := window * 1000
	s := small{now: &now}
	var servers []Server
	for i, w := range weights {
		m := maxFails
		if m == 0 {
			m = NoMaxFails
		}
		servers = append(servers, Server{Addr: fmt.Sprint(i), Weight: w, MaxFails: m, FailTimeout: window})
	}
	if len(weights) == 1 {
		// A single peer has no weights: a down one beside it makes it a group.
		servers = append(servers, Server{Addr: "down", Down: true})
	}
	var err error
	s.Upstream, err = New(servers, nil, &Options{Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	return s
}

// copyOf makes another upstream of the same state; with fresh its queues are made
// anew from it.
func (s small) copyOf(fresh bool) small {
	now := *s.now
	c := small{now: &now, Upstream: &Upstream{clock: func() time.Duration { return now },
		resolution: s.resolution, selector: s.selector, onIdle: s.onIdle, places: s.places}}
	c.set.Store(s.set.Load())
	from, to := &s.groups[Primary], &c.groups[Primary]
	*to = *from
	to.up = c.Upstream
	to.peers, to.cold = slices.Clone(from.peers), slices.Clone(from.cold)
	switch q := from.queues; {
	case q == nil:
	case fresh:
		for i := range to.peers {
			to.peers[i].cw = from.currentWeight(i)
		}
		to.queues = newQueues(to)
	default:
		c := *q
		c.lists, c.links, c.nodes, c.aside = slices.Clone(q.lists), slices.Clone(q.links), slices.Clone(q.nodes), slices.Clone(q.aside)
		to.queues = &c
	}
	return c
}

// key is all that can matter for what comes next: times only by what they are
// compared with.
func (s small) key() string {
	g := &s.groups[Primary]
	now := int64(*s.now / time.Second)
	key := make([]byte, 0, 64)
	for i := range g.peers {
		p, c := &g.peers[i], &g.cold[i]
		key = strconv.AppendInt(key, g.currentWeight(i), 10)
		key = append(key, ' ')
		key = strconv.AppendInt(key, p.ew, 10)
		key = append(key, ' ', '0'+byte(min(p.load.fails(), max(c.maxFails, 1))))
		key = strconv.AppendBool(key, now == p.checked)
		key = strconv.AppendBool(key, c.accessed < p.checked)
	}
	return string(key)
}

// step is one request: its outcomes, and whether the window passes before it.
type step struct {
	later    bool
	outcomes []Outcome
}

var everyStep = func() (steps []step) {
	for _, later := range []bool{false, true} {
		for _, o := range [][]Outcome{{OK}, {Failed, OK}, {Failed, Failed}, {Next, OK}} {
			steps = append(steps, step{later, o})
		}
	}
	return steps
}()

// run makes the request, and returns the peers that it got.
func (s small) run(t *testing.T, st step) (got []int) {
	if st.later {
		*s.now += window + time.Second
	}
	r := &Request{}
	if err := s.Begin(r); err != nil {
		t.Fatal(err)
	}
	for _, o := range st.outcomes {
		if err := s.Get(r); err != nil {
			return append(got, None)
		}
		got = append(got, int(r.slot)) // slots are in list order here
		if err := s.Free(r, o); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

// walk visits every reachable state, and returns how many there are and how
// many steps lead out of them.
func walk(t *testing.T, weights []int, maxFails int) (states, steps int) {
	type pair struct{ scan, queues small }
	start := pair{newSmall(t, weights, maxFails, 1<<30), newSmall(t, weights, maxFails, 0)}
	seen := map[string]bool{start.scan.key(): true}
	front := []pair{start}
	for len(front) > 0 {
		at := front[0]
		front = front[1:]
		states++
		for _, st := range everyStep {
			steps++
			scan, queued, fresh := at.scan.copyOf(false), at.queues.copyOf(false), at.queues.copyOf(true)
			want, got := scan.run(t, st), queued.run(t, st)
			usual := engine.MaxSteps
			engine.MaxSteps = 0 // all in the heaps
			anew := fresh.run(t, st)
			engine.MaxSteps = usual
			if !slices.Equal(want, got) || !slices.Equal(want, anew) {
				require.Equal(t, want, got, "weights %v, max_fails %d, state %s, step %v", weights, maxFails, at.scan.key(), st)
				require.Equal(t, want, anew, "new queues: weights %v, max_fails %d, state %s, step %v", weights, maxFails, at.scan.key(), st)
			}
			key := scan.key()
			if q, f := queued.key(), fresh.key(); q != key || f != key {
				require.Equal(t, key, q, "weights %v, max_fails %d, before %s, step %v", weights, maxFails, at.scan.key(), st)
				require.Equal(t, key, f, "new queues: weights %v, max_fails %d, before %s, step %v", weights, maxFails, at.scan.key(), st)
			}
			if !seen[key] {
				seen[key] = true
				front = append(front, pair{scan, queued})
			}
		}
	}
	return states, steps
}
