//go:build linux

package redispatch

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Result is how the play of one scenario compares with the recording.
type Result struct {
	Scenario    *Scenario
	Differences []Difference
	// Err is set where the scenario could not be played.
	Err error
	// Earlier holds the differences of earlier plays, where PlayAll played the
	// scenario again.
	Earlier [][]Difference
}

// Equal reports whether the scenario was played and nothing differed.
func (r Result) Equal() bool { return r.Err == nil && len(r.Differences) == 0 }

// Play plays one scenario from a fresh start.
func Play(sc *Scenario, start Start) Result {
	s, err := newStage(sc, start)
	if err != nil {
		return Result{Scenario: sc, Err: err}
	}
	answers, err := s.playSteps()
	// What arrived and what was recorded is settled only when all have left.
	err = errors.Join(err, s.close())
	if err != nil {
		return Result{Scenario: sc, Err: err}
	}
	return Result{Scenario: sc, Differences: s.compare(answers)}
}

// stage is a scenario with its backends and the proxy standing.
type stage struct {
	scenario *Scenario
	backends map[string]*backend
	ids      map[string]string // by address
	journal  *journal
	recorder *Recorder
	subject  Subject
}

func newStage(sc *Scenario, start Start) (_ *stage, err error) {
	s := &stage{
		scenario: sc,
		backends: map[string]*backend{},
		ids:      map[string]string{},
		journal:  &journal{connections: map[string]int{}},
		recorder: &Recorder{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	addrs := map[string]string{}
	for id, queue := range sc.Backends {
		b, err := newBackend(id, sc.Keepalive, s.journal)
		if err != nil {
			return nil, err
		}
		s.backends[id] = b
		s.ids[b.port.Addr()] = id
		addrs[id] = b.port.Addr()
		if err := b.set(queue); err != nil {
			return nil, err
		}
	}
	s.subject, err = start(sc, addrs, s.recorder)
	return s, err
}

func (s *stage) close() error {
	var err error
	if s.subject != nil {
		err = s.subject.Close()
	}
	for _, b := range s.backends {
		b.close()
	}
	return err
}

func (s *stage) playSteps() ([]answer, error) {
	steps := s.scenario.Steps
	answers := make([]answer, len(steps))
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	defer wg.Wait()
	var started time.Time
	for i, step := range steps {
		if step.Overlap > 0 {
			time.Sleep(time.Until(started.Add(step.Overlap.Duration())))
		} else {
			wg.Wait()
			time.Sleep(step.Wait.Duration())
		}
		for id, queue := range step.Set {
			if err := s.backends[id].set(queue); err != nil {
				return nil, err
			}
		}
		started = time.Now()
		wg.Go(func() {
			answers[i], errs[i] = send(s.subject.Addr(), i, step.Request)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("step %d: %w", i, err)
		}
	}
	return answers, errors.Join(errs...)
}
