package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// scenario is one kind of work, the same for every contender.
type scenario struct {
	n       int
	weights weights
	health  health
	some    int // are dead besides
}

func (s scenario) String() string { return fmt.Sprintf("n=%d, %s, %s", s.n, s.weights, s.health) }

// weights says how the peers' weights are drawn.
type weights int

const (
	equal    weights = 1
	upTo10   weights = 10
	upTo1000 weights = 1000
)

func (w weights) String() string {
	if w == equal {
		return "equal"
	}
	return fmt.Sprintf("1..%d", int(w))
}

// list draws n weights from 1 to w, the same ones each time.
func (w weights) list(n int) []int {
	random := rand.New(rand.NewPCG(1, uint64(w)))
	list := make([]int, n)
	for i := range list {
		list[i] = 1 + random.IntN(int(w))
	}
	return list
}

// health says what befalls the peers.
type health int

const (
	healthy  health = iota
	oneDead         // failed out, and its window does not end: the clock does not move
	halfDead        // so are as many as are the first half that is picked
	failing         // every 100th request fails, without a retry
	retried         // every request goes to a second peer (http_404), no peer fails
)

func (h health) String() string {
	return [...]string{"healthy", "one dead", "half dead", "1 % failures", "every request retried"}[h]
}

// dead is how many of the peers are dead.
func (s scenario) dead() int {
	switch s.health {
	case oneDead:
		return 1
	case halfDead:
		return s.n / 2
	}
	return s.some
}

// failTimeout and maxFails are the peers' limits: nginx's defaults, but for a
// shorter timeout where failures go on for ever.
func (s scenario) failTimeout() time.Duration {
	if s.health == failing {
		return time.Second
	}
	return 10 * time.Second
}

const maxFails = 1

// addr is the address of peer i.
func addr(i int) string { return fmt.Sprintf("10.%d.%d.%d:80", i>>16&255, i>>8&255, i&255) }

// peerOf is the peer of an address.
func peerOf(a string) (int, error) {
	var x, y, z int
	_, err := fmt.Sscanf(a, "10.%d.%d.%d:80", &x, &y, &z)
	return x<<16 | y<<8 | z, err
}

// course is what one worker's requests go through, one after the other.
type course struct {
	retry   bool
	failing bool
	count   int
	now     time.Duration
}

func (s scenario) course() *course {
	return &course{retry: s.health == retried, failing: s.health == failing, now: 1_700_000_000 * time.Second}
}

// clock is the clock that plain and trunk both read. It does not move, but while peers
// fail: there a second is 20 requests, so that they come back too.
func (c *course) clock() time.Duration { return c.now }

// fails begins the next request, and says whether it will fail.
func (c *course) fails() bool {
	if !c.failing {
		return false
	}
	c.count++
	if c.count%20 == 0 {
		c.now += time.Second
	}
	return c.count%100 == 0
}
