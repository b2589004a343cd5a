//go:build linux

package redispatch

import "slices"

// Known is a difference that is by design.
type Known struct {
	// What says what differs, and why.
	What string
	// From returns the first step at which a scenario may differ by it, or
	// Never. Later steps may differ by what that one has done.
	From func(*Scenario) int
	// Fields are those that may differ. None: all.
	Fields []Field
}

// Never, returned by Known.From, says that a scenario is not touched.
const Never = -1

// Explain parts the differences of a result: which of list apply to the scenario,
// and what none of them explains.
func Explain(r Result, list []Known) (applying []Known, unexplained []Difference) {
	unexplained = r.Differences
	for _, k := range list {
		from := k.From(r.Scenario)
		if from == Never {
			continue
		}
		applying = append(applying, k)
		unexplained = slices.DeleteFunc(slices.Clone(unexplained), func(d Difference) bool {
			return (d.Step >= from || d.Step == WholeScenario) &&
				(len(k.Fields) == 0 || slices.Contains(k.Fields, d.Field))
		})
	}
	return applying, unexplained
}

// FirstStep makes a Known.From of what is to be found in one step.
func FirstStep(in func(sc *Scenario, i int) bool) func(*Scenario) int {
	return func(sc *Scenario) int {
		for i := range sc.Steps {
			if in(sc, i) {
				return i
			}
		}
		return Never
	}
}
