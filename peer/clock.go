package peer

import "time"

// Now is one reading of an upstream's clock.
type Now struct {
	// Time is the time since the Unix epoch.
	Time time.Duration
	// Tick is the time since the Unix epoch in units of the resolution: whole
	// seconds, as nginx's cached time, unless the resolution option differs.
	Tick int64
	// Milli is the same time in whole milliseconds; least_time uses it.
	Milli int64
}

// wallTime is a time of the clock as time.Time.
func wallTime(d time.Duration) time.Time { return time.Unix(0, int64(d)).UTC() }

// now reads the clock.
func (u *Upstream) now() Now { return u.at(u.clock()) }

// at is a time of the clock.
func (u *Upstream) at(d time.Duration) Now {
	// The usual case divides by a constant, which costs a multiplication.
	tick := d / time.Second
	if u.resolution != time.Second {
		tick = d / u.resolution
	}
	return Now{d, int64(tick), int64(d / time.Millisecond)}
}

// lock takes the lock, and returns the time. The clock is read before, since that takes
// longer than a pick; where a later time was used in between it is read again, so that
// times only go back in order if the clock does.
func (u *Upstream) lock() Now {
	now := u.now()
	u.mu.Lock()
	if now.Time < u.latest {
		now = u.nowLocked()
	}
	u.latest = now.Time
	return now
}

// nowLocked reads the clock under the lock, and releases that if the clock panics.
func (u *Upstream) nowLocked() Now {
	done := false
	defer func() {
		if !done {
			u.mu.Unlock()
		}
	}()
	now := u.now()
	done = true
	return now
}

// checkResolution returns the resolution that an option means.
func checkResolution(d time.Duration) (time.Duration, error) {
	switch {
	case d == 0:
		return time.Second, nil
	case d < time.Millisecond || d > time.Second || time.Second%d != 0:
		return 0, &ConfigError{Server: -1, Field: "Resolution", Value: d,
			Reason: "must divide a second, and be at least 1 ms"}
	}
	return d, nil
}
