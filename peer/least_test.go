package peer

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/engine"
)

// least is a method that takes the least loaded peer. load is a Selector with a Load and all that belongs to it; nil: by Conns.
type least struct{ load *Selector }

func (least) Describe() Description { return Description{} }
func (m least) Build(*Set) (Selector, error) {
	var s Selector
	if m.load != nil {
		s = *m.load
	}
	s.ComparesConns = true
	s.Pick = func(g *Group, r *Request, now Now) int {
		if g.Single() {
			return RoundRobin
		}
		return g.Least(r, now)
	}
	return s, nil
}

// tired is the load of peers of which every other one needs twice the time, until it has
// rested for its fail timeout.
func tired(byWinner bool) *Selector {
	slow := func(g *Group, i int, now Now) bool {
		idle, failTimeout := g.Idle(i, now)
		return i%2 == 1 && idle <= failTimeout
	}
	return &Selector{LoadRule: LeastTime, TiesByWinner: byWinner,
		Load: func(g *Group, i int, now Now) int64 {
			if slow(g, i, now) {
				return 2 * (1 + g.Conns(i))
			}
			return 1 + g.Conns(i)
		},
		LoadUntil: func(g *Group, i int, now Now) int64 {
			if idle, failTimeout := g.Idle(i, now); slow(g, i, now) {
				return now.Tick - idle + failTimeout + 1
			}
			return NoTick
		}}
}

// Which engine a group has: levels where it is large and its loads change only when
// something happens; and none any more once it is picked from in another way.
func TestLeastEngine(t *testing.T) {
	servers := func(n int) (list []Server) {
		for i := range n {
			list = append(list, Server{Addr: fmt.Sprint(i), Weight: 3})
		}
		return list
	}
	unsteady := tired(false)
	unsteady.LoadUntil = nil
	enormous := &Selector{Load: func(g *Group, i int, now Now) int64 { return 1<<62 - int64(i) }, LoadUntil: tired(false).LoadUntil}
	for _, test := range []struct {
		name  string
		peers int
		load  *Selector
		want  bool
	}{
		{"few", 24, nil, false},
		{"many", 100, nil, true},
		{"with alarms", 100, tired(true), true},
		{"unsteady", 100, unsteady, false},
		{"too great for a product", 100, enormous, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, err := New(servers(test.peers), least{test.load}, nil)
			require.NoError(t, err)
			require.NoError(t, u.Get(begun(t, u)))
			g := &u.groups[Primary]
			require.Equal(t, test.want, g.levels != nil)
			tr := g.Trunk()
			tr.Add(1)
			tr.Settle()
			require.NoError(t, u.Get(begun(t, u)))
			require.Nil(t, g.levels)
		})
	}
}

func begun(t *testing.T, u *Upstream) *Request {
	r := &Request{}
	require.NoError(t, u.Begin(r))
	return r
}

// Every state that a small group can reach by Least is walked breadth first, with scan and
// levels side by side, as TestExhaustiveEnginesAgree does for round robin: with up to two
// requests held. Beside the levels with their history there are in each state levels that
// are new there. TRUNK_EXHAUSTIVE=1 walks all of it; otherwise at most 30 states of each
// list of weights.
func TestExhaustiveLevelsAgree(t *testing.T) {
	most := 30
	if os.Getenv("TRUNK_EXHAUSTIVE") != "" {
		most = 1 << 30
	}
	scanMost := engine.ScanMost
	t.Cleanup(func() { engine.ScanMost = scanMost })
	for name, load := range map[string]*Selector{"conns": nil, "true ties": tired(false), "by winner": tired(true)} {
		t.Run(name, func(t *testing.T) {
			states, steps := 0, 0
			for _, weights := range everyWeights(3, 3) {
				for maxFails := range 3 {
					s, k := walkLeast(t, newLeast(t, weights, maxFails, load, 1<<30), newLeast(t, weights, maxFails, load, 0), most)
					states, steps = states+s, steps+k
				}
			}
			t.Logf("%d states, %d steps", states, steps)
		})
	}
}

// holder is a small upstream with requests that hold its peers: their indexes.
type holder struct {
	*Upstream
	now  *time.Duration
	held []int
}

func newLeast(t *testing.T, weights []int, maxFails int, load *Selector, scanMost int) holder {
	engine.ScanMost = scanMost
	now := window * 1000
	servers := []Server{{Addr: "down", Down: true}} // so that no one is single
	for i, w := range weights {
		s := Server{Addr: fmt.Sprint(i), Weight: w, MaxFails: maxFails, FailTimeout: window}
		if maxFails == 0 {
			s.MaxFails = NoMaxFails
		}
		if i == 1 {
			s.MaxConns = 1
		}
		servers = append(servers, s)
	}
	u, err := New(servers, least{load}, &Options{Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	return holder{u, &now, nil}
}

func (h holder) copyOf(fresh bool) holder {
	now := *h.now
	c := holder{&Upstream{clock: func() time.Duration { return now },
		resolution: h.resolution, selector: h.selector, onIdle: h.onIdle, places: h.places}, &now, slices.Clone(h.held)}
	c.set.Store(h.set.Load())
	from, to := &h.groups[Primary], &c.groups[Primary]
	*to = *from
	to.up, to.loads = c.Upstream, nil
	to.peers, to.cold = slices.Clone(from.peers), slices.Clone(from.cold)
	if q := from.levels; q != nil && fresh {
		to.export()
	} else if q != nil {
		to.levels = &levels{by: q.by, spots: slices.Clone(q.spots), nodes: slices.Clone(q.nodes),
			alarms: slices.Clone(q.alarms), first: q.first, tick: q.tick, stale: q.stale,
			order: append(make([]level, 0, cap(q.order)), q.order...), ids: slices.Clone(q.ids), spare: q.spare,
			chains: slices.Clone(q.chains)}
	}
	return c
}

// key is all that can matter for what comes next.
func (h holder) key() string {
	g := &h.groups[Primary]
	tick := int64(*h.now / time.Second)
	key := fmt.Append(nil, h.held)
	for i := range g.peers {
		p, c := &g.peers[i], &g.cold[i]
		for _, v := range []int64{g.currentWeight(i), p.ew, int64(min(p.load.fails(), max(c.maxFails, 1)))} {
			key = append(strconv.AppendInt(key, v, 10), ' ')
		}
		key = strconv.AppendBool(key, tick-p.checked <= p.failTimeout)
		key = strconv.AppendBool(key, c.accessed < p.checked)
	}
	return string(key)
}

// leastStep is what a request does: it gets a peer, and a retry if the first fails; or one that
// holds a peer frees it.
type leastStep struct {
	later, back bool // the window passes before it; the clock goes back by as much
	free        bool
	outcomes    []Outcome // none: the peer is held
}

var leastSteps = []leastStep{
	{}, {later: true}, {back: true}, {outcomes: []Outcome{OK}}, {outcomes: []Outcome{Failed, OK}}, {later: true, outcomes: []Outcome{Failed, Failed}},
	{free: true, outcomes: []Outcome{OK}}, {free: true, outcomes: []Outcome{Failed}}, {later: true, free: true, outcomes: []Outcome{OK}},
}

// run makes a step, and returns the peers that it got.
func (h *holder) run(t *testing.T, st leastStep) (got []int) {
	switch {
	case st.later:
		*h.now += window + time.Second
	case st.back:
		*h.now -= window + time.Second
	}
	r := begun(t, h.Upstream)
	g := &h.groups[Primary]
	switch {
	case st.free && len(h.held) > 0:
		i := h.held[0]
		h.held = h.held[1:]
		r.hold(&g.peers[i], &g.cold[i])
		require.NoError(t, h.Free(r, st.outcomes[0]))
	case st.free:
	case len(st.outcomes) == 0 && len(h.held) < 2:
		if h.Get(r) == nil {
			_, i := h.peer(r.slot)
			h.held, got = append(h.held, i), append(got, i)
		}
	}
	if st.free {
		return got
	}
	for _, o := range st.outcomes {
		if h.Get(r) != nil {
			return append(got, None)
		}
		_, i := h.peer(r.slot)
		got = append(got, i)
		require.NoError(t, h.Free(r, o))
	}
	return got
}

// walkLeast visits the states, at most so many, and returns how many they were and how many
// steps led out of them.
func walkLeast(t *testing.T, scan, leveled holder, most int) (states, steps int) {
	type pair struct{ scan, levels holder }
	seen := map[string]bool{scan.key(): true}
	front := []pair{{scan, leveled}}
	for ; len(front) > 0 && states < most; states++ {
		at := front[0]
		front = front[1:]
		for _, st := range leastSteps {
			steps++
			scan, old, fresh := at.scan.copyOf(false), at.levels.copyOf(false), at.levels.copyOf(true)
			want := scan.run(t, st)
			for name, h := range map[string]*holder{"levels": &old, "new levels": &fresh} {
				if got := h.run(t, st); !slices.Equal(want, got) || scan.key() != h.key() {
					require.Fail(t, "they differ", "%s: want %v, got %v; step %+v\nbefore %s\nwant   %s\ngot    %s",
						name, want, got, st, at.scan.key(), scan.key(), h.key())
				}
			}
			if key := scan.key(); !seen[key] {
				seen[key] = true
				front = append(front, pair{scan, old})
			}
		}
	}
	return states, steps
}
