package main

import (
	"slices"
	"time"
)

// timing is how long and how often is measured.
type timing struct {
	slice  time.Duration // of one contender's turn
	rounds int           // how many turns each has
}

// forSize is the timing for n peers: many peers need long slices, or what is
// measured is how they come back into the cache after the others' turns.
func (t timing) forSize(n int) timing {
	t.slice *= time.Duration(min(10, 1+n/250))
	return t
}

// interleaved runs the works by turns, in short slices, and returns for each
// the median of its nanoseconds per request, and the median of its ratio to the first in
// the same round. So what else the machine does hits all alike.
func (t timing) interleaved(works []func(requests int)) (ns, ratio []float64) {
	requests := make([]int, len(works))
	for i, work := range works {
		requests[i] = t.calibrate(work)
	}
	all := make([][]float64, len(works))
	ratios := make([][]float64, len(works))
	for range t.rounds {
		for i, work := range works {
			work(requests[i]/2 + 1) // brings its memory back into the cache
			all[i] = append(all[i], perRequest(work, requests[i]))
		}
		for i := range works {
			ratios[i] = append(ratios[i], all[i][len(all[i])-1]/all[0][len(all[0])-1])
		}
	}
	for i := range works {
		ns = append(ns, median(all[i]))
		ratio = append(ratio, median(ratios[i]))
	}
	return ns, ratio
}

// calibrate finds how many requests fill a slice.
func (t timing) calibrate(work func(int)) int {
	work(1) // the first request may have more to do
	for n := 1; ; n *= 2 {
		if took := perRequest(work, n) * float64(n); took > float64(t.slice)/2 {
			return max(1, int(float64(n)*float64(t.slice)/took))
		}
	}
}

func perRequest(work func(int), n int) float64 {
	start := time.Now()
	work(n)
	return float64(time.Since(start)) / float64(n)
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
