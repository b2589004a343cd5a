package balancer

import "time"

const (
	defaultTimeout  = 60 * time.Second
	idlePerPeer     = 32 // nginx keeps as many per block
	defaultDeadline = 5 * time.Second
	// defaultIdle is nginx's keepalive_timeout.
	defaultIdle = 60 * time.Second
	// idleUnwanted is how long an HTTP/2 connection is idle where none is to be kept:
	// time for a new one to get its first request.
	idleUnwanted = 100 * time.Millisecond
)

// normalized returns r with the defaults filled in, but for the timeouts that the
// transport may set. The error is a *ConfigError.
func (r Retry) normalized() (Retry, error) {
	refuse := func(field string, value any, reason string) (Retry, error) {
		return Retry{}, &ConfigError{Server: -1, Field: "Retry." + field, Value: value, Reason: reason}
	}
	if r.On&^allKinds != 0 {
		return refuse("On", uint16(r.On), "holds bits that are no kind")
	}
	if r.Counts&^allKinds != 0 {
		return refuse("Counts", uint16(r.Counts), "holds bits that are no kind")
	}
	switch {
	case r.On&KindBody != 0:
		return refuse("On", r.On, "body: when a response body breaks off it is too late for another peer")
	case r.Off && r.On != 0:
		return refuse("Off", true, "passes nothing on, and On names what to pass on: "+r.On.String())
	case r.Off && r.NonIdempotent:
		return refuse("Off", true, "passes nothing on, and NonIdempotent would pass on more")
	case r.Off && r.Again:
		return refuse("Off", true, "passes nothing on, and Again would ask a peer twice")
	case r.Again && r.Tries < 2:
		return refuse("Again", true, "needs Tries of at least 2: without, each peer has one try")
	case r.BufferFirst && r.BufferBody == 0:
		return refuse("BufferFirst", true, "reads up to BufferBody bytes, which is 0")
	}
	for _, t := range []struct {
		name  string
		value time.Duration
	}{
		{"Timeout", r.Timeout}, {"ConnectTimeout", r.ConnectTimeout}, {"SendTimeout", r.SendTimeout}, {"ReadTimeout", r.ReadTimeout},
	} {
		if t.value < 0 {
			return refuse(t.name, t.value, "must be at least 0; 0 means the default")
		}
	}
	switch {
	case r.Tries < 0:
		return refuse("Tries", r.Tries, "must be at least 0; 0 means all peers")
	case r.Executions < 0:
		return refuse("Executions", r.Executions, "must be at least 0; 0 means Tries, and one repeat for each peer")
	case r.BufferBody < 0:
		return refuse("BufferBody", r.BufferBody, "must be at least 0")
	case r.DeadlineCounts < NeverCounts:
		return refuse("DeadlineCounts", r.DeadlineCounts, "must be at least 0, or NeverCounts")
	case !(r.Budget.Share >= 0):
		return refuse("Budget.Share", r.Budget.Share, "must be at least 0")
	case !(r.Budget.PerSecond >= 0):
		return refuse("Budget.PerSecond", r.Budget.PerSecond, "must be at least 0")
	}
	if r.On == 0 && !r.Off {
		r.On = defaultOn
	}
	if r.DeadlineCounts == 0 {
		r.DeadlineCounts = defaultDeadline
	}
	return r, nil
}
