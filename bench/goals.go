package main

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// goal is a bound that trunk has set itself.
type goal struct {
	text      string
	most      float64
	scenarios []scenario // the worst of them counts
}

var goals = []goal{
	{"n = 10, any weights", 1.3, []scenario{{n: 10, weights: equal}, {n: 10, weights: upTo10}, {n: 10, weights: upTo1000}}},
	{"n = 100, equal", .15, []scenario{{n: 100, weights: equal}}},
	{"n = 100, 1..10", .25, []scenario{{n: 100, weights: upTo10}}},
	{"n = 1000, equal", .02, []scenario{{n: 1000, weights: equal}}},
	{"n = 1000, 1..10", .03, []scenario{{n: 1000, weights: upTo10}}},
	{"n = 10,000, up to 10 distinct weights", .02, []scenario{{n: 10_000, weights: equal}, {n: 10_000, weights: upTo10}}},
	{"n = 10,000, weights 1..1000", .15, []scenario{{n: 10_000, weights: upTo1000}}},
	{"one dead peer, n = 100", .25, []scenario{{n: 100, weights: equal, health: oneDead}}},
	{"every request retried once, n = 100, equal", .15, []scenario{{n: 100, weights: equal, health: retried}}},
	{"half of 1000 dead", 1.2, []scenario{{n: 1000, weights: equal, health: halfDead}, {n: 1000, weights: upTo10, health: halfDead}}},
}

func goalsTable(t timing) string {
	t.rounds *= 3
	var rows [][]string
	add := func(text string, most, measured float64) {
		verdict := "yes"
		if measured > most {
			verdict = "no"
		}
		rows = append(rows, []string{text, fmt.Sprint(most), figure(measured), verdict})
	}
	list := named("plain loop", "trunk round robin")
	for _, g := range goals {
		worst := 0.0
		for _, s := range g.scenarios {
			worst = max(worst, compare(t, s, list)[1].ratio)
		}
		add(g.text, g.most, worst)
	}
	add("n = 10,000, 1..10, to its own n = 10", 10, ownGrowth(t))
	allocated := 0.0
	for _, h := range []health{healthy, oneDead, failing, retried} {
		allocated = max(allocated, allocations(scenario{n: 1000, weights: upTo10, health: h}))
	}
	add("allocations per get and free, with failures and retries", 0, math.Round(allocated*100)/100)
	floor := lockedAlone(t)
	rows = append(rows, []string{"for comparison: the locked instructions of a get and a free alone, n = 100, equal", "", figure(floor), ""})
	return table([]string{"case", "goal: at most", "measured", "met"}, rows)
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
