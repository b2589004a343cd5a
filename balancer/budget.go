package balancer

import (
	"sync"
	"time"
)

// Budget bounds the retries of all requests of an upstream together, so that an
// outage is not doubled by its retries: over the last ten seconds, retries may
// be Share of the requests plus PerSecond a second. The zero value: no bound.
type Budget struct {
	// Share is retries per request: 0.2 allows one retry for five requests.
	// From 0.
	Share float64
	// PerSecond is allowed whatever the traffic, so that an upstream with
	// few requests has retries at all. From 0.
	PerSecond float64
}

const budgetSeconds = 10

// budget counts requests and retries by the second. Goroutines may share it.
type budget struct {
	Budget
	mu    sync.Mutex
	now   int64 // the second that is being counted
	count [budgetSeconds]struct{ requests, retries float64 }
}

func newBudget(b Budget) *budget {
	if b == (Budget{}) {
		return nil
	}
	return &budget{Budget: b}
}

// advance empties the seconds that have passed out of the window.
func (b *budget) advance(now time.Duration) *struct{ requests, retries float64 } {
	sec := int64(now / time.Second)
	if sec-b.now >= budgetSeconds {
		b.now = sec - budgetSeconds
	}
	for b.now < sec {
		b.now++
		b.count[b.now%budgetSeconds] = struct{ requests, retries float64 }{}
	}
	return &b.count[b.now%budgetSeconds]
}

// request counts a request. A nil budget counts nothing.
func (b *budget) request(now time.Duration) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now).requests++
}

// retry takes one retry, if there is one left. A nil budget has no end.
func (b *budget) retry(now time.Duration) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.advance(now)
	var requests, retries float64
	for _, c := range b.count {
		requests += c.requests
		retries += c.retries
	}
	if retries+1 > b.Share*requests+b.PerSecond*budgetSeconds {
		return false
	}
	c.retries++
	return true
}
