package main

import (
	"fmt"
	"runtime"
	"strings"
)

var (
	sizes      = []int{3, 10, 100, 1000, 10_000}
	allWeights = []weights{equal, upTo10, upTo1000}
)

// cell is what was measured of one contender in one scenario.
type cell struct {
	ns, ratio float64
	ok        bool // it took part
}

// builds is how often a scenario is set up again: where memory happens to lie
// makes a difference of its own.
const builds = 3

// compare measures the contenders that take part in a scenario against the
// first of them. Of the builds the median counts.
func compare(t timing, s scenario, all []contender) []cell {
	t = t.forSize(s.n)
	t.rounds = max(1, t.rounds/builds)
	ns := make([][]float64, len(all))
	ratio := make([][]float64, len(all))
	for range builds {
		works, at := workers(s, all)
		n, r := t.interleaved(works)
		for k, i := range at {
			ns[i], ratio[i] = append(ns[i], n[k]), append(ratio[i], r[k])
		}
	}
	cells := make([]cell, len(all))
	for i := range all {
		if len(ns[i]) > 0 {
			cells[i] = cell{median(ns[i]), median(ratio[i]), true}
		}
	}
	return cells
}

// workers sets the contenders up that take part, and says which they are.
func workers(s scenario, all []contender) (works []func(int), at []int) {
	for i := range all {
		if c := &all[i]; c.takesPart(s) {
			target, err := c.build(s)
			must(err)
			works, at = append(works, target.worker()), append(at, i)
		}
	}
	runtime.GC() // what building left behind is not measured
	return works, at
}

// growth is the cost of a healthy pick and done, by weights, size and contender.
type growth map[weights]map[int][]cell

func measureGrowth(t timing) growth {
	g := growth{}
	for _, w := range allWeights {
		g[w] = map[int][]cell{}
		for _, n := range sizes {
			g[w][n] = compare(t, scenario{n: n, weights: w}, contenders)
		}
	}
	return g
}

func growthTables(g growth) string {
	var b strings.Builder
	for _, w := range allWeights {
		head := []string{"weights " + w.String()}
		for _, n := range sizes {
			head = append(head, fmt.Sprintf("n = %d", n))
		}
		var rows [][]string
		for i, c := range contenders {
			row := []string{c.name}
			took := false
			for _, n := range sizes {
				cell := g[w][n][i]
				took = took || cell.ok
				row = append(row, cell.String())
			}
			if took {
				rows = append(rows, append(row, c.lacks))
			}
		}
		nsRow := []string{"plain loop, ns"}
		for _, n := range sizes {
			nsRow = append(nsRow, fmt.Sprintf("%.0f", g[w][n][0].ns))
		}
		rows = append(rows, append(nsRow, ""))
		b.WriteString(table(append(head, "does not do"), rows) + "\n")
	}
	return b.String()
}

func (c cell) String() string {
	if !c.ok {
		return ""
	}
	return figure(c.ratio)
}
