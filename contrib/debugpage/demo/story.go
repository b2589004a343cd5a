package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

// story is an upstream with its traffic. It begins some time ago, so that there is
// something to see at once, and then goes on for real.
type story struct {
	*peer.Upstream
	panel *debugpage.Panel
	back  atomic.Int64 // how far its clock is behind
	every time.Duration
	picks int
	ask   func(s *story, n int) // the nth request
}

const heavy = "10.0.0.1:8080"

// newStories begins all stories.
func newStories(page *debugpage.Page) ([]*story, error) {
	var all []*story
	for _, s := range []struct {
		name    string
		method  peer.Method
		servers []peer.Server
		ask     func(*story, int)
	}{
		{"backend", nil, []peer.Server{
			{Addr: heavy, Weight: 10, MaxFails: 2},
			{Addr: "10.0.0.2:8080", MaxFails: 2},
		}, night()},
		{"api", leastconn.New(), []peer.Server{
			{Addr: "10.0.1.1:9000", Weight: 3, MaxConns: 4},
			{Addr: "10.0.1.2:9000", Weight: 2},
			{Addr: "10.0.1.3:9000", Drain: true},
			{Addr: "10.0.1.4:9000", Down: true},
			{Addr: "10.0.2.1:9000", Backup: true},
		}, holding()},
		{"cache", hash.NewConsistent("$uri"), []peer.Server{
			{Addr: "10.0.3.1:6081"}, {Addr: "10.0.3.2:6081"}, {Addr: "10.0.3.3:6081", Weight: 2},
		}, keys},
	} {
		one := &story{panel: page.Panel(s.name), every: 250 * time.Millisecond, ask: s.ask}
		if err := one.begin(s.servers, s.method); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// begin makes the upstream, and reports what has happened so far.
func (s *story) begin(servers []peer.Server, m peer.Method) (err error) {
	const past = 200
	s.back.Store(int64(past * s.every))
	start := time.Now()
	s.Upstream, err = peer.New(servers, m, &peer.Options{
		Clock: func() time.Duration {
			return time.Duration(start.UnixNano()) + time.Since(start) - time.Duration(s.back.Load())
		},
		OnEvent: s.panel.Event,
	})
	if err != nil {
		return err
	}
	s.panel.Watch(s.Upstream)
	for range past {
		s.next()
		s.back.Add(-int64(s.every))
	}
	return nil
}

// goOn makes a request every now and then.
func (s *story) goOn(ctx context.Context) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.next()
		}
	}
}

func (s *story) next() {
	s.ask(s, s.picks)
	s.picks++
}

// get begins a request, gets a peer for it and shows how that was decided.
func (s *story) get(r *peer.Request) (addr string, ok bool) {
	if s.Begin(r) != nil {
		return "", false
	}
	return s.again(r)
}

func (s *story) again(r *peer.Request) (addr string, ok bool) {
	var d peer.Decision
	err := s.Explain(r, &d)
	s.panel.Decision(&d)
	if err != nil {
		return "", false
	}
	p, _ := s.Peer(r)
	return p.Server.Addr, true
}

// night is the story that began it all: the heavy peer fails twice, and for a while
// everything goes to the light one; back again, the heavy one has its weight to recover.
func night() func(*story, int) {
	failures := 0
	return func(s *story, n int) {
		if n%200 == 75 {
			failures = 2
		}
		r := &peer.Request{}
		addr, ok := s.get(r)
		for ok && addr == heavy && failures > 0 {
			failures--
			_ = s.Free(r, peer.Failed)
			addr, ok = s.again(r)
		}
		if ok {
			_ = s.Free(r, peer.OK)
		}
	}
}

// holding are requests that take a while: more and more, and then fewer again.
func holding() func(*story, int) {
	var held []*peer.Request
	return func(s *story, n int) {
		r := &peer.Request{}
		if _, ok := s.get(r); ok {
			held = append(held, r)
		}
		for most := 6 + n/8%6; len(held) > most; held = held[1:] {
			_ = s.Free(held[0], peer.OK)
		}
	}
}

// keys are pages that are asked for again and again, some more often than others.
func keys(s *story, n int) {
	r := &peer.Request{Key: fmt.Sprintf("/articles/%d", n*n%37)}
	addr, ok := s.get(r)
	for first := true; ok; first = false {
		if !first || n%97 != 60 || addr == "" {
			_ = s.Free(r, peer.OK)
			return
		}
		_ = s.Free(r, peer.Failed)
		addr, ok = s.again(r)
	}
}
