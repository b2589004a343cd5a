package balancertest

import (
	"sync/atomic"
	"time"
)

// Bubble as Config.Clock is the clock of a testing/synctest bubble. Then
// Advance sleeps, the delays of Backends are waited for, and deadlines and
// timeouts are on the same clock as everything else; all of it without really waiting.
//
//	synctest.Test(t, func(t *testing.T) {
//		c := balancertest.Config(t, `upstream u { server a; server b; }`)
//		c.Clock = balancertest.Bubble
//		lb := balancertest.NewConfig(t, c)
//		...
//	})
func Bubble() time.Duration { return time.Duration(time.Now().UnixNano()) }

// fakeClock moves only when it is set. Goroutines may share it.
type fakeClock struct{ since atomic.Int64 }

// newFakeClock starts at a full second of a time like ours: nginx's arithmetic
// takes a clock near 0 for a peer that was asked just now.
func newFakeClock() *fakeClock {
	c := &fakeClock{}
	c.since.Store(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *fakeClock) now() time.Duration      { return time.Duration(c.since.Load()) }
func (c *fakeClock) advance(d time.Duration) { c.since.Add(int64(d)) }
