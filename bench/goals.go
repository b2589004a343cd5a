package main

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// goal is a bound that trunk has set itself, for one contender in relation to another.
type goal struct {
	text, of, to string
	most         float64
	scenarios    []scenario // the worst of them counts
}

var goals = slices.Concat(
	goalsOf("round robin", "trunk round robin", "plain loop", []bound{
		{"n = 3", 1.8, []scenario{{n: 3, weights: equal}}},
		{"n = 10, any weights", 1, []scenario{{n: 10, weights: equal}, {n: 10, weights: upTo10}, {n: 10, weights: upTo1000}}},
		{"n = 100, equal", .15, []scenario{{n: 100, weights: equal}}},
		{"n = 100, 1..10", .25, []scenario{{n: 100, weights: upTo10}}},
		{"n = 1000, equal", .012, []scenario{{n: 1000, weights: equal}}},
		{"n = 10,000, up to 10 distinct weights", .02, []scenario{{n: 10_000, weights: equal}, {n: 10_000, weights: upTo10}}},
		{"n = 10,000, weights 1..1000", .15, []scenario{{n: 10_000, weights: upTo1000}}},
		{"one dead peer, n = 100", .17, []scenario{{n: 100, weights: equal, health: oneDead}}},
		{"half of 1000 dead", .03, []scenario{{n: 1000, weights: equal, health: halfDead}, {n: 1000, weights: upTo10, health: halfDead}}},
		{"every request retried once, n = 100, equal", .25, []scenario{{n: 100, weights: equal, health: retried}}},
	}),
	goalsOf("least_conn", "trunk least_conn", "plain least_conn", []bound{
		{"n = 3, idle", 3, []scenario{{n: 3, weights: equal}}},
		{"n = 10, idle", 2.4, []scenario{{n: 10, weights: equal}}},
		{"n = 100, idle", .4, []scenario{{n: 100, weights: equal}}},
		{"n = 1000, idle", .04, []scenario{{n: 1000, weights: equal}}},
		{"n = 10,000, weights 1..1000, idle", .05, []scenario{{n: 10_000, weights: upTo1000}}},
	}),
	goalsOf("least_time", "trunk least_time", "trunk least_time, always scan", []bound{
		{"n = 100, equal, idle", .3, []scenario{{n: 100, weights: equal}}},
		{"n = 1000, equal, idle", .04, []scenario{{n: 1000, weights: equal}}},
	}),
)

type bound struct {
	text      string
	most      float64
	scenarios []scenario
}

func goalsOf(what, of, to string, bounds []bound) (list []goal) {
	for _, b := range bounds {
		list = append(list, goal{what + ", " + b.text, of, to, b.most, b.scenarios})
	}
	return list
}

func goalsTable(t timing) string {
	t.rounds *= 3
	var rows [][]string
	add := func(text, to string, most, measured float64) {
		verdict := "yes"
		if measured > most {
			verdict = "no"
		}
		rows = append(rows, []string{text, to, fmt.Sprint(most), figure(measured), verdict})
	}
	for _, g := range goals {
		worst := 0.0
		for _, s := range g.scenarios {
			worst = max(worst, compare(t, s, named(g.to, g.of))[1].ratio)
		}
		add(g.text, g.to, g.most, worst)
	}
	add("round robin, n = 10,000, 1..10", "its own n = 10", 10, ownGrowth(t))
	allocated := 0.0
	for _, h := range []health{healthy, oneDead, failing, retried} {
		allocated = max(allocated, allocations(scenario{n: 1000, weights: upTo10, health: h}))
	}
	add("allocations per get and free, with failures and retries", "", 0, math.Round(allocated*100)/100)
	floor := lockedAlone(t)
	rows = append(rows, []string{"for comparison: the locked instructions of a get and a free alone, n = 100, equal", "plain loop", "", figure(floor), ""})
	return table([]string{"case", "in relation to", "goal: at most", "measured", "met"}, rows)
}

// ownGrowth is the cost at 10,000 peers in relation to that at 10.
func ownGrowth(t timing) float64 {
	var works []func(int)
	for _, n := range []int{10, 10_000} {
		target, err := trunkRoundRobin(scenario{n: n, weights: upTo10})
		must(err)
		works = append(works, target.worker())
	}
	_, ratio := t.forSize(10_000).interleaved(works)
	return ratio[1]
}

// lockedAlone is what a get's lock and unlock and a free's exchange cost with
// nothing between them, in relation to the plain loop over 100 peers: what
// no balancer that shares an exact state can be below.
func lockedAlone(t timing) float64 {
	plain, err := newPlain(scenario{n: 100, weights: equal})
	must(err)
	var mu sync.Mutex
	var frees atomic.Uint64
	_, ratio := t.interleaved([]func(int){plain.worker(), func(requests int) {
		for range requests {
			mu.Lock()
			//lint:ignore SA2001 nothing between them is the point
			mu.Unlock()
			n := frees.Load()
			frees.CompareAndSwap(n, n+1)
		}
	}})
	return ratio[1]
}
