//go:build linux

package redispatch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplain(t *testing.T) {
	fromPost := FirstStep(func(sc *Scenario, i int) bool { return sc.Steps[i].Request.Method == "POST" })
	posts := &Scenario{Steps: []Step{{}, {Request: Request{Method: "POST"}}, {}}}
	before := Difference{Step: 0, Field: FieldChain}
	at := Difference{Step: 1, Field: FieldStatus}
	after := Difference{Step: 2, Field: FieldChain}
	whole := Difference{Step: WholeScenario, Field: FieldConnections}
	all := []Difference{before, at, after, whole}

	for _, tc := range []struct {
		name        string
		scenario    *Scenario
		known       Known
		applies     bool
		unexplained []Difference
	}{
		{"from its step on", posts, Known{From: fromPost}, true, []Difference{before}},
		{"only its fields", posts, Known{From: fromPost, Fields: []Field{FieldConnections, FieldStatus}}, true, []Difference{before, after}},
		{"another scenario", &Scenario{Steps: make([]Step, 3)}, Known{From: fromPost}, false, all},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Result{Scenario: tc.scenario, Differences: all}
			applying, unexplained := Explain(r, []Known{tc.known})
			require.Equal(t, tc.applies, len(applying) == 1)
			require.Equal(t, tc.unexplained, unexplained)
			require.Len(t, r.Differences, 4, "the result is left as it was")
		})
	}
}
