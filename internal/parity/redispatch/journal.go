//go:build linux

package redispatch

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
)

// stepHeader names the step that a request belongs to. The client sends it, and a
// proxy passes on what it does not know; so a request is counted where it
// belongs also when steps overlap.
const stepHeader = "X-Step"

// StepOf returns the number of the step that a request belongs to.
func StepOf(r *http.Request) (int, error) {
	n, err := strconv.Atoi(r.Header.Get(stepHeader))
	if err != nil {
		return 0, fmt.Errorf("redispatch: request without a step: %w", err)
	}
	return n, nil
}

// Record is what a proxy says it did with one request.
type Record struct {
	// Chain is the addresses of the peers that were asked, in order, with
	// NoLive where none was available; Status has one element for each: the
	// status received, or the verdict (502, 504), or 0 for none.
	Chain  []string
	Status []int
	// LogStatus is what the proxy's access log would show. 0: not compared.
	LogStatus int
}

// Recorder collects the Records of one scenario. Goroutines may share it.
type Recorder struct {
	mu     sync.Mutex
	byStep map[int][]Record
}

// Add records what was done with the request of a step.
func (r *Recorder) Add(step int, rec Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byStep == nil {
		r.byStep = map[int][]Record{}
	}
	r.byStep[step] = append(r.byStep[step], rec)
}

func (r *Recorder) of(step int) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byStep[step]
}

// journal is what the backends of a scenario saw, in order of arrival.
type journal struct {
	mu          sync.Mutex
	arrivals    []*arrival
	connections map[string]int
	problems    []string
}

type arrival struct {
	step         int
	backend      string
	method, path string
	bytes        int
	// problem is what is wrong with the request itself.
	problem string
}

func (j *journal) connected(backend string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.connections[backend]++
}

func (j *journal) arrived(a *arrival) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.arrivals = append(j.arrivals, a)
}

func (j *journal) read(a *arrival, bytes int, right bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a.bytes = bytes
	if !right && a.problem == "" {
		a.problem = "the body is not the client's"
	}
}

// broken records what no recorded proxy ever sent.
func (j *journal) broken(problem string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.problems = append(j.problems, problem)
}
