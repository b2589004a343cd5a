//go:build linux

package redispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Field is what a Difference is about.
type Field string

// The fields of Expect that are compared.
const (
	FieldStatus         Field = "status" // with http_status
	FieldServedBy       Field = "served_by"
	FieldChain          Field = "chain"
	FieldUpstreamStatus Field = "upstream_status"
	FieldExecuted       Field = "executed"
	FieldBodies         Field = "bodies"
	FieldLogStatus      Field = "log_status"
)

// What is compared beside them.
const (
	FieldConnections Field = "connections" // of the whole scenario
	FieldRequest     Field = "request"     // a backend received it otherwise than nginx sends it
	FieldAnswer      Field = "answer"      // its body is not the one that the backend gave
	FieldRecord      Field = "record"      // the proxy recorded a request twice, or not at all
)

// Difference is one value that is not as recorded.
type Difference struct {
	// Step is the index of the step, or WholeScenario.
	Step      int
	Field     Field
	Got, Want string
}

// WholeScenario is the step of a Difference that belongs to no step.
const WholeScenario = -1

// String formats d for a person.
func (d Difference) String() string {
	where := "scenario"
	if d.Step != WholeScenario {
		where = fmt.Sprintf("step %d", d.Step)
	}
	return fmt.Sprintf("%s: %s: got %s, want %s", where, d.Field, d.Got, d.Want)
}

// compare compares everything that was recorded. The stage must be closed.
func (s *stage) compare(answers []answer) []Difference {
	var c comparison
	for i, step := range s.scenario.Steps {
		c.step = i
		c.compareAnswer(answers[i], step.Expect)
		c.compareRecord(s, s.recorder.of(i), step.Expect)
		c.compareArrivals(s.journal, step)
	}
	c.step = WholeScenario
	c.compareWhole(s)
	return c.found
}

// comparison collects the differences of one scenario.
type comparison struct {
	step  int
	found []Difference
}

func (c *comparison) equal(field Field, got, want string) {
	if got != want {
		c.found = append(c.found, Difference{Step: c.step, Field: field, Got: got, Want: want})
	}
}

func (c *comparison) compareAnswer(got answer, want Expect) {
	c.equal(FieldStatus, formatStatus(got.status, got.httpStatus), formatStatus(want.Status, want.HTTPStatus))
	c.equal(FieldServedBy, formatID(got.servedBy), formatID(want.ServedBy))
	c.equal(FieldAnswer, got.problem, "")
}

func (c *comparison) compareRecord(s *stage, got []Record, want Expect) {
	if len(got) != 1 {
		c.equal(FieldRecord, fmt.Sprintf("%d records", len(got)), "1")
		return
	}
	chain := make([]string, len(got[0].Chain))
	for i, addr := range got[0].Chain {
		chain[i] = addr
		if id, known := s.ids[addr]; known {
			chain[i] = id
		}
	}
	c.equal(FieldChain, strings.Join(chain, " "), strings.Join(want.Chain, " "))
	c.equal(FieldUpstreamStatus, fmt.Sprint(got[0].Status), fmt.Sprint(want.UpstreamStatus))
	if got[0].LogStatus != 0 {
		status := want.Status
		if want.LogStatus != 0 {
			status = code2status(want.LogStatus)
		}
		c.equal(FieldLogStatus, string(code2status(got[0].LogStatus)), string(status))
	}
}

func (c *comparison) compareArrivals(j *journal, step Step) {
	executed := map[string]int{}
	bodies := []Body{}
	for _, a := range j.arrivals {
		if a.step != c.step {
			continue
		}
		executed[a.backend]++
		bodies = append(bodies, Body{Backend: a.backend, Bytes: a.bytes})
		problem := a.problem
		if problem == "" && a.method != step.Request.Method {
			problem = "sent as " + a.method
		}
		if want := step.Request.path(); problem == "" && a.path != want {
			problem = "sent for " + a.path
		}
		c.equal(FieldRequest, problem, "")
	}
	c.equal(FieldExecuted, formatCounts(executed), formatCounts(step.Expect.Executed))
	if step.Request.BodyLen > 0 {
		c.equal(FieldBodies, fmt.Sprint(bodies), fmt.Sprint(step.Expect.Bodies))
	}
}

func (c *comparison) compareWhole(s *stage) {
	c.equal(FieldConnections, formatCounts(s.journal.connections), formatCounts(s.scenario.Connections))
	for _, problem := range s.journal.problems {
		c.equal(FieldRequest, problem, "")
	}
	for _, a := range s.journal.arrivals {
		if a.step < 0 || a.step >= len(s.scenario.Steps) {
			c.equal(FieldRequest, "a request of no step at "+a.backend, "")
		}
	}
}

func formatStatus(status Status, httpStatus int) string {
	if httpStatus != 0 {
		return fmt.Sprintf("%s(%d)", status, httpStatus)
	}
	return string(status)
}

func formatID(id string) string {
	if id == "" {
		return "null"
	}
	return id
}

// formatCounts leaves out zeros: the recording sometimes has them.
func formatCounts(counts map[string]int) string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		if counts[id] != 0 {
			parts = append(parts, fmt.Sprintf("%s:%d", id, counts[id]))
		}
	}
	return "{" + strings.Join(parts, " ") + "}"
}
