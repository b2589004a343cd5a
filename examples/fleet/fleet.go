package main

import (
	"math/rand/v2"
	"time"

	"github.com/trunklb/trunk/peer"
)

const (
	clients = 50 // fresh processes, all started at the same moment
	steps   = 20 // requests of each, in step with the others'
)

// backends are the servers of every client: ten shares, of which a has three.
var backends = []peer.Server{
	{Addr: "a", Weight: 3}, {Addr: "b"}, {Addr: "c"}, {Addr: "d"}, {Addr: "e"}, {Addr: "f"}, {Addr: "g"}, {Addr: "h"},
}

// cycle is the sum of the weights.
const cycle = 10

// load is how many clients ask each backend in each step.
type load [steps][]int

// simulate lets the clients send their requests. Each is a process of its own, with its own
// source of random numbers.
func simulate(randomStart bool) (load, error) {
	var l load
	for s := range l {
		l[s] = make([]int, len(backends))
	}
	now := 1_700_000_000 * time.Second
	for client := range clients {
		up, err := peer.New(backends, nil, &peer.Options{
			RandomStart: randomStart,
			Source:      rand.NewPCG(2026, uint64(client)), // the same picture every time
			Clock:       func() time.Duration { return now },
		})
		if err != nil {
			return l, err
		}
		for s := range l {
			r := &peer.Request{}
			if err := up.Begin(r); err != nil {
				return l, err
			}
			if err := up.Get(r); err != nil {
				return l, err
			}
			p, _ := up.Peer(r)
			l[s][p.Index]++
			if err := up.Free(r, peer.OK); err != nil {
				return l, err
			}
		}
	}
	return l, nil
}

// most is the largest number of clients that ask one backend at once.
func (l load) most() int {
	most := 0
	for _, asked := range l {
		for _, n := range asked {
			most = max(most, n)
		}
	}
	return most
}

// total is how many requests a backend gets in all steps.
func (l load) total(backend int) int {
	sum := 0
	for _, asked := range l {
		sum += asked[backend]
	}
	return sum
}

// fair is how many clients should ask a backend at once.
func fair(backend int) int { return clients * max(1, backends[backend].Weight) / cycle }
