package main

import (
	"time"

	"github.com/trunklb/trunk/peer"
)

// remedy is a way to count failures: nginx's, or one of the remedies.
type remedy struct {
	name   string
	code   string // the policy as a user writes it
	policy peer.Policy
}

var (
	recovery = 30 * time.Second
	warmUp   = 30 * time.Second
)

var remedies = []remedy{
	{"nginx", "and trunk, by default", peer.Policy{}},
	{"the weight comes back by time", "Recovery: 30s", peer.Policy{Recovery: recovery}},
	{"debt forgiven, but not the weight", "Forgive", peer.Policy{Forgive: true}},
	{"both", "Recovery: 30s, Forgive", peer.Policy{Recovery: recovery, Forgive: true}},
	{"a failure costs a tenth", "Penalty: .1", peer.Policy{Penalty: .1}},
	{"a tenth, and forgiven", "Penalty: .1, Forgive", peer.Policy{Penalty: .1, Forgive: true}},
	{"slow start: a is to warm up first", "all of these, SlowStart: 30s", peer.Policy{Penalty: .1, Recovery: recovery,
		Forgive: true, SlowStart: warmUp}},
}

// The indexes in remedies of the two that are compared in full.
const (
	nginx = 0
	both  = 3
)

// morningPicks is how many requests of the morning are looked at.
const morningPicks = 200

// step is one moment of the story.
type step struct {
	what string
	// picked is who got the request, empty where there was none.
	picked string
	a, b   peer.State
}

// night is the story under one policy.
type night struct {
	remedy
	evening []step // and the two failures
	// minute is a's effective weight in the minute after the failures, as a
	// request would find it, in equal steps.
	minute  []int64
	morning []step // one for each request
}

// play plays the story: a has weight 10 and max_fails=2, b has weight 1. At night a
// fails twice, in turn, and is taken out. Seven hours later all is well, and
// requests come, one a second.
func play(c remedy) (night, error) {
	n := night{remedy: c}
	s, err := begin(c, &n)
	if err != nil {
		return n, err
	}
	s.now += 7 * time.Hour
	for range morningPicks {
		if err := s.request(peer.OK, "", &n.morning); err != nil {
			return n, err
		}
		s.now += time.Second
	}
	return n, n.lookIn()
}

// lookIn fills in minute. Looking changes what is seen, since it takes a request: so
// each look is at another upstream that has had the same evening. Without
// Recovery there is nothing to look for.
func (n *night) lookIn() error {
	for after := time.Duration(0); after <= time.Minute; after += 3 * time.Second {
		s, err := begin(n.remedy, &night{})
		if err != nil {
			return err
		}
		if n.policy.Recovery > 0 {
			s.now += after
			var seen []step
			if err := s.request(peer.OK, "", &seen); err != nil {
				return err
			}
		}
		n.minute = append(n.minute, s.up.State(peer.Primary, 0).EffectiveWeight)
	}
	return nil
}

// scene is an upstream and the clock that it reads.
type scene struct {
	up  *peer.Upstream
	now time.Duration
}

// begin makes a scene and plays the evening.
func begin(c remedy, n *night) (*scene, error) {
	s := &scene{now: 1_700_000_000 * time.Second}
	var err error
	s.up, err = peer.New([]peer.Server{
		{Addr: "a", Weight: 10, MaxFails: 2},
		{Addr: "b"},
	}, nil, &peer.Options{Policy: c.policy, Clock: func() time.Duration { return s.now }})
	if err != nil {
		return nil, err
	}
	n.evening = append(n.evening, s.see("the evening", ""))
	for _, what := range []string{"a fails", "a fails again"} {
		if err := s.request(peer.Failed, what, &n.evening); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// request sends a request that ends so, and notes it.
func (s *scene) request(o peer.Outcome, what string, steps *[]step) error {
	r := &peer.Request{}
	if err := s.up.Begin(r); err != nil {
		return err
	}
	if err := s.up.Get(r); err != nil {
		return err
	}
	p, _ := s.up.Peer(r)
	if err := s.up.Free(r, o); err != nil {
		return err
	}
	*steps = append(*steps, s.see(what, p.Server.Addr))
	return nil
}

func (s *scene) see(what, picked string) step {
	return step{what, picked, s.up.State(peer.Primary, 0), s.up.State(peer.Primary, 1)}
}

// toB is how many of the first n requests of the morning b got.
func (n night) toB(first int) int {
	count := 0
	for _, s := range n.morning[:first] {
		if s.picked == "b" {
			count++
		}
	}
	return count
}

// fair is b's part of so many requests by the weights.
func fair(requests int) float64 { return float64(requests) / 11 }
