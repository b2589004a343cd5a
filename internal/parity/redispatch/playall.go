//go:build linux

package redispatch

import (
	"cmp"
	"slices"
	"sync"
)

// PlayAll plays scenarios side by side, at most parallel at a time. The results
// are in the order of the scenarios.
//
// The recordings have margins of 75 ms, and a machine that is busy with many
// scenarios, or with something else, misses one now and then. So a result for
// which again returns true is played again, first with few others and then alone;
// the last play counts, and the differences of the others are kept in
// Result.Earlier. What differs by its nature differs every time.
func PlayAll(scenarios []*Scenario, start Start, parallel int, again func(Result) bool) []Result {
	results := make([]Result, len(scenarios))
	todo := longestFirst(scenarios)
	for _, width := range []int{parallel, min(parallel, 4), 1, 1} {
		sideBySide(todo, width, func(i int) {
			r := Play(scenarios[i], start)
			if last := results[i]; last.Scenario != nil {
				r.Earlier = append(last.Earlier, last.Differences)
			}
			results[i] = r
		})
		todo = slices.DeleteFunc(todo, func(i int) bool { return !again(results[i]) })
	}
	return results
}

// longestFirst returns the indexes of scenarios by their length, or one of the
// long ones would be left for the end.
func longestFirst(scenarios []*Scenario) []int {
	order := make([]int, len(scenarios))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(scenarios[b].Approx, scenarios[a].Approx)
	})
	return order
}

func sideBySide(indexes []int, width int, do func(int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for _, i := range indexes {
		next <- i
	}
	close(next)
	wg.Wait()
}
