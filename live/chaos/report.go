package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is the sum of all verdicts.
type report struct {
	seed   uint64
	worlds int
	by     map[string]*verdict // by wire
	rows   map[*row]int
	// counted are the healthy peers that were counted by a row.
	counted map[*row]int
	found   map[string]int
	faults  []string
}

func newReport(seed uint64) *report {
	return &report{seed: seed, by: map[string]*verdict{}, rows: map[*row]int{}, counted: map[*row]int{}, found: map[string]int{}}
}

// add adds a world's verdict.
func (r *report) add(w *world, v *verdict) {
	r.worlds++
	sum := r.by[v.wire]
	if sum == nil {
		sum = &verdict{rows: map[*row]int{}}
		r.by[v.wire] = sum
	}
	sum.calls += v.calls
	sum.idempotent += v.idempotent
	sum.served += v.served
	sum.attempts += v.attempts
	sum.most = max(sum.most, v.most)
	for row, n := range v.rows {
		r.rows[row] += n
		sum.rows[row] += n
	}
	for row, n := range v.counted {
		r.counted[row] += n
	}
	for name, n := range v.found {
		r.found[name] += n
	}
	if v.faults != nil {
		r.faults = append(r.faults, fmt.Sprintf("%v\n\n    %s", w, strings.Join(v.faults, "\n\n    ")))
	}
}

// total is how many faults there were.
func (r *report) total() (n int) {
	for _, of := range r.found {
		n += of
	}
	return n
}

// sums returns calls and idempotent ones of all wires.
func (r *report) sums() (calls, idempotent int) {
	for _, v := range r.by {
		calls += v.calls
		idempotent += v.idempotent
	}
	return calls, idempotent
}

// write writes the tables, and the first faults.
func (r *report) write(out io.Writer) {
	const first = 12
	for i, text := range r.faults {
		if i == first {
			fmt.Fprintf(out, "... and in %d more worlds\n\n", len(r.faults)-first)
			break
		}
		fmt.Fprintf(out, "FAULTS in %s\n\n", text)
	}
	calls, idempotent := r.sums()
	fmt.Fprintf(out, "seed %d: %d worlds, %d calls, %d of them idempotent, %d faults\n\n", r.seed, r.worlds, calls, idempotent, r.total())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "wire\tcalls\tidempotent\tserved\tinherent\tdocumented\tattempts\tmost at servers")
	for _, wi := range wires {
		if v := r.by[wi.name]; v != nil {
			sum := map[string]int{}
			for row, n := range v.rows {
				sum[row.class] += n
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", wi.name, v.calls, v.idempotent, v.served, sum["inherent"], sum["documented"], v.attempts, v.most)
		}
	}
	t.Flush()
	fmt.Fprintln(out)
	fmt.Fprintln(t, "class\trow\tcalls\thealthy peers counted\trests on")
	for _, row := range rows {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\n", row.class, row.name, r.rows[row], r.counted[row], row.sentence)
	}
	var names []string
	for name := range r.found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(t, "FAULT\t%s\t%d\t\t%s\n", name, r.found[name], strings.Repeat("!", 3))
	}
	t.Flush()
}
