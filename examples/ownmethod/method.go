package main

import (
	"fmt"
	"sync/atomic"

	"github.com/trunklb/trunk/peer"
)

// ByLoad is a method of one's own: of two peers drawn at random it takes the one that
// reports less load. What load is the application says: here a queue's length that each
// backend sends with its answers.
type ByLoad struct{ loads loads }

// loads are the last loads, by address.
type loads map[string]*atomic.Int64

// Describe says what the method is called, and what it needs: nothing.
func (m *ByLoad) Describe() peer.Description { return peer.Description{Name: "two by load"} }

// Build is called for each new set of servers: it looks up their loads beforehand, so
// that a pick need not.
func (m *ByLoad) Build(set *peer.Set) (peer.Selector, error) {
	s := &selector{}
	for group := range s.load {
		for i := range set.Len(group) {
			s.load[group] = append(s.load[group], m.loads[set.Server(group, i).Addr])
		}
	}
	return peer.Selector{Pick: s.pick, Explain: s.explain}, nil
}

type selector struct{ load [2][]*atomic.Int64 } // by group and index

// pick runs in the upstream's lock: it is short, and allocates nothing. Candidates leaves
// out who is down, full, failed, or has been tried by this request.
func (s *selector) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	peers := g.Candidates(r, now)
	switch len(peers) {
	case 0:
		return peer.None // the backup group is next
	case 1:
		r.Rule = "only one left"
		return peers[0]
	}
	n := uint32(len(peers))
	first := g.Draw() % n
	second := (first + 1 + g.Draw()%(n-1)) % n // another one
	a, b := peers[first], peers[second]
	r.Rule = "less load of two drawn"
	if load := s.load[g.Index()]; load[b].Load() < load[a].Load() {
		return b
	}
	return a
}

// explain is what a Decision says of a peer.
func (s *selector) explain(g *peer.Group, _ *peer.Request, i int, _ peer.Now) string {
	return fmt.Sprint("load ", s.load[g.Index()][i].Load())
}
