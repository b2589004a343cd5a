package main

import (
	"math"
	"sync"
	"time"
)

// plain is what every ratio is to: nginx's round robin with its account of
// failures, as the tightest plain loop that Go has for it. One struct of 64 bytes per peer,
// sums in registers, one lock around a get and one around a free. It is no
// product: one request at a time, one retry, no backup, no change of the set.
type plain struct {
	mu    sync.Mutex
	clock func() time.Duration
	peers []plainPeer
}

type plainPeer struct {
	cw, ew, weight    int64
	checked, accessed int64 // seconds
	failTimeout       int32 // seconds
	fails, maxFails   int32
	conns, maxConns   int32
	down              bool
}

const none = -1

// get picks and takes a peer, but not the one that was tried.
func (p *plain) get(tried int) int {
	p.mu.Lock()
	now := int64(p.clock() / time.Second)
	peers := p.peers
	best, bestCW, total := none, int64(math.MinInt64), int64(0)
	for i := range peers {
		q := &peers[i]
		if q.down || i == tried ||
			q.fails >= q.maxFails && q.maxFails > 0 && now-q.checked <= int64(q.failTimeout) ||
			q.conns >= q.maxConns && q.maxConns > 0 {
			continue
		}
		ew := q.ew
		cw := q.cw + ew
		q.cw = cw
		total += ew
		if ew < q.weight {
			q.ew = ew + 1
		}
		if cw > bestCW {
			best, bestCW = i, cw
		}
	}
	if best != none {
		q := &p.peers[best]
		q.cw -= total
		q.conns++
		if now-q.checked > int64(q.failTimeout) {
			q.checked = now
		}
	}
	p.mu.Unlock()
	return best
}

// free takes peer i back.
func (p *plain) free(i int, failed bool) {
	p.mu.Lock()
	q := &p.peers[i]
	q.conns--
	if failed {
		now := int64(p.clock() / time.Second)
		q.fails++
		q.accessed, q.checked = now, now
		if q.maxFails > 0 {
			q.ew = max(0, q.ew-q.weight/int64(q.maxFails))
		}
	} else if q.accessed < q.checked {
		q.fails = 0
	}
	p.mu.Unlock()
}

func newPlain(s scenario) (target, error) {
	c := s.course()
	p := &plain{clock: c.clock, peers: make([]plainPeer, s.n)}
	for i, w := range s.weights.list(s.n) {
		p.peers[i] = plainPeer{ew: int64(w), weight: int64(w), maxFails: maxFails,
			failTimeout: int32(s.failTimeout() / time.Second)}
	}
	bury(s, func() int { return p.get(none) }, p.free)
	return &plainTarget{p, c}, nil
}

type plainTarget struct {
	*plain
	*course
}

func (t *plainTarget) worker() func(requests int) {
	p, c := t.plain, t.course
	return func(requests int) {
		for range requests {
			failed := c.fails()
			i := p.get(none)
			if c.retry {
				p.free(i, false)
				i = p.get(i)
			}
			p.free(i, failed)
		}
	}
}

func (t *plainTarget) pick(held int) int { return t.get(none) }
func (t *plainTarget) done(held, i int)  { t.free(i, false) }

// bury makes the first peers that are picked fail, as many as shall be dead.
func bury(s scenario, get func() int, free func(i int, failed bool)) {
	dead := map[int]bool{}
	for len(dead) < s.dead() {
		i := get()
		dead[i] = true
		free(i, true)
	}
}
