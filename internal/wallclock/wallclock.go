// Package wallclock is the default clock of everything in trunk that keeps time.
package wallclock

import "time"

// New returns a clock of the time since the Unix epoch: the wall time, read once, plus
// the monotonic time since. A step of the wall clock therefore changes nothing, ends no
// session and takes no peer out: nginx, which reads the wall clock each time, keeps a
// failed peer out for as long as the clock was set back.
func New() func() time.Duration {
	start := time.Now()
	epoch := time.Duration(start.UnixNano())
	return func() time.Duration { return epoch + time.Since(start) }
}
