package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// named returns some of the contenders; those that were not built are left out.
func named(names ...string) []contender {
	var list []contender
	all := slices.Concat(contenders, leasts)
	for _, name := range names {
		if i := slices.IndexFunc(all, func(c contender) bool { return c.name == name }); i >= 0 {
			list = append(list, all[i])
		}
	}
	return list
}

// healthTable is what dead and failing peers cost.
func healthTable(t timing) string {
	list := named("plain loop", "trunk round robin", "trunk, always scan", "trunk least_conn", "kratos p2c")
	head := []string{"case"}
	for _, c := range list[1:] {
		head = append(head, c.name)
	}
	var rows [][]string
	for _, h := range []health{oneDead, halfDead, failing, retried} {
		for _, n := range sizes[1:] {
			for _, w := range []weights{equal, upTo10} {
				s := scenario{n: n, weights: w, health: h}
				row := []string{s.String()}
				for _, cell := range compare(t, s, list)[1:] {
					row = append(row, cell.String())
				}
				rows = append(rows, row)
			}
		}
	}
	return table(head, rows)
}

// distinctTable compares the queues with the scan, by how many weights differ.
func distinctTable(t timing) string {
	head := []string{"distinct weights"}
	ns := []int{8, 12, 16, 24, 100, 1000}
	for _, n := range ns {
		head = append(head, fmt.Sprintf("n = %d", n))
	}
	var rows [][]string
	for _, distinct := range []int{1, 4, 8, 16, 50, 100, 500, 1000} {
		row := []string{fmt.Sprint(distinct)}
		for _, n := range ns {
			if distinct > n {
				row = append(row, "")
				continue
			}
			list := make([]int, n)
			for i := range list {
				list[i] = 1 + i*37%distinct
			}
			scan, err := newTrunkOf(scenario{n: n}, list, nil, neverQueues)
			must(err)
			queues, err := newTrunkOf(scenario{n: n}, list, nil, alwaysQueues)
			must(err)
			_, ratio := t.forSize(n).interleaved([]func(int){scan.worker(), queues.worker()})
			row = append(row, figure(ratio[1]))
		}
		rows = append(rows, row)
	}
	return table(head, rows)
}

// asideTable is the cost by how many of a thousand peers are dead.
func asideTable(t timing) string {
	const n = 1000
	var works []func(int)
	dead := []int{0, 1, 10, 100, 250, 500, 900}
	for _, k := range dead {
		target, err := trunkRoundRobin(scenario{n: n, weights: equal, health: healthy, some: k})
		must(err)
		works = append(works, target.worker())
	}
	ns, _ := t.forSize(n).interleaved(works)
	head, row := []string{"dead of 1000"}, []string{"ns"}
	for i, k := range dead {
		head = append(head, fmt.Sprint(k))
		row = append(row, fmt.Sprintf("%.0f", ns[i]))
	}
	return table(head, [][]string{row})
}

// parallelTable is the cost of a request where two goroutines share a balancer.
func parallelTable(t timing) string {
	list := slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool { return c.name == "kratos wrr" })
	head := []string{"GOMAXPROCS 2, two goroutines"}
	some := []int{10, 100, 1000}
	for _, n := range some {
		head = append(head, fmt.Sprintf("n = %d", n))
	}
	rows := make([][]string, len(list))
	for i, c := range list {
		rows[i] = []string{c.name}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, n := range some {
		s := scenario{n: n, weights: equal}
		var works []func(int)
		for _, c := range list {
			target, err := c.build(s)
			must(err)
			works = append(works, both(target.worker(), target.worker()))
		}
		// A slice must be long beside the start of a goroutine.
		slow := timing{max(t.forSize(n).slice, 2*time.Millisecond), t.rounds}
		_, ratio := slow.interleaved(works)
		for i := range list {
			rows[i] = append(rows[i], figure(ratio[i]))
		}
	}
	return table(head, rows)
}

// both lets two goroutines do half of the requests each.
func both(a, b func(int)) func(int) {
	return func(requests int) {
		var group sync.WaitGroup
		group.Go(func() { a(requests / 2) })
		b(requests - requests/2)
		group.Wait()
	}
}

// picksTable is the cost of picks alone, with the peers held.
func picksTable(t timing) string {
	head := []string{"pick alone"}
	some := []scenario{{n: 10, weights: equal}, {n: 10, weights: upTo10}, {n: 100, weights: equal}, {n: 100, weights: upTo10}}
	for _, s := range some {
		head = append(head, fmt.Sprintf("n = %d, %v", s.n, s.weights))
	}
	rows := make([][]string, len(contenders))
	for i, c := range contenders {
		rows[i] = []string{c.name}
	}
	for _, s := range some {
		var takers []target
		var at []int
		for i := range contenders {
			if contenders[i].takesPart(s) {
				target, err := contenders[i].build(s)
				must(err)
				takers, at = append(takers, target), append(at, i)
			}
		}
		ratios := burstRatios(t, takers)
		for i := range rows {
			text := ""
			if k := slices.Index(at, i); k >= 0 {
				text = figure(ratios[k])
			}
			rows[i] = append(rows[i], text)
		}
	}
	return table(head, rows)
}

// burstRatios times bursts of picks; the dones between them are not counted.
func burstRatios(t timing, takers []target) []float64 {
	lists := make([][]float64, len(takers))
	for range t.rounds {
		var first float64
		for k, taker := range takers {
			var got [burst]int
			start := time.Now()
			for held := range burst {
				got[held] = taker.pick(held)
			}
			took := float64(time.Since(start))
			for held, i := range got {
				taker.done(held, i)
			}
			if k == 0 {
				first = took
			}
			lists[k] = append(lists[k], took/first)
		}
	}
	medians := make([]float64, len(takers))
	for k := range lists {
		medians[k] = median(lists[k])
	}
	return medians
}

// allocations is how many objects the requests of a scenario allocate, each.
func allocations(s scenario) float64 {
	target, err := trunkRoundRobin(s)
	must(err)
	work := target.worker()
	work(1000)
	const requests = 10_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work(requests)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / requests
}
