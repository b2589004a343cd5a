package balancer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/peer"
)

const (
	defaultInterval = 30 * time.Second
	// defaultLookup is nginx's resolver_timeout.
	defaultLookup = 30 * time.Second
)

// checkLookups refuses negative times, and networks that a Resolver does not know.
func (c *Config) checkLookups() error {
	switch c.ResolveNetwork {
	case "", "ip", "ip4", "ip6":
	default:
		return &ConfigError{Server: -1, Field: "ResolveNetwork", Value: strconv.Quote(c.ResolveNetwork), Reason: `must be "ip", "ip4" or "ip6"`}
	}
	for _, f := range []struct {
		field string
		value time.Duration
	}{{"ResolveInterval", c.ResolveInterval}, {"ResolveTimeout", c.ResolveTimeout}} {
		if f.value < 0 {
			return &ConfigError{Server: -1, Field: f.field, Value: f.value, Reason: "must be at least 0; 0 means the default"}
		}
	}
	return nil
}

// lookups is the looking up again of names. It is guarded by Upstream.changing,
// but for the configuration.
type lookups struct {
	interval, timeout time.Duration
	// life ends with Close.
	life context.Context
	end  context.CancelFunc
	// stop ends the present goroutine; nil: there is none.
	stop context.CancelFunc
}

func newLookups(c *Config) lookups {
	l := lookups{interval: cmpDuration(c.ResolveInterval, defaultInterval),
		timeout: cmpDuration(c.ResolveTimeout, defaultLookup)}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// watchNames starts the goroutine that looks names up again, or ends it where there
// are none. u.changing is held.
func (u *Upstream) watchNames() {
	l, wanted := &u.lookups, len(u.names.known.asked()) > 0
	switch {
	case wanted && l.stop == nil:
		var ctx context.Context
		ctx, l.stop = context.WithCancel(l.life)
		go u.lookAgain(ctx)
	case !wanted && l.stop != nil:
		l.stop()
		l.stop = nil
	}
}

// lookAgain looks all names up, one after the other, again and again, until ctx
// ends.
func (u *Upstream) lookAgain(ctx context.Context) {
	timer := time.NewTimer(u.lookups.jittered())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		for _, q := range u.askedAgain() {
			u.lookOnce(ctx, q)
			if ctx.Err() != nil {
				return
			}
		}
		timer.Reset(u.lookups.jittered())
	}
}

// jittered is the interval, up to a tenth more or less: processes that were
// started together shall not ask together for ever.
func (l *lookups) jittered() time.Duration {
	return l.interval - l.interval/10 + rand.N(l.interval/5+1)
}

func (u *Upstream) askedAgain() []question {
	u.changing.Lock()
	defer u.changing.Unlock()
	return u.names.known.asked()
}

// lookOnce looks one name up, makes the set of the answer, and reports what has come
// of it.
func (u *Upstream) lookOnce(ctx context.Context, q question) {
	u.changing.Lock()
	old, known := u.names.known[q]
	u.changing.Unlock()
	if !known {
		return // it was removed in the meantime
	}
	limited, cancel := context.WithTimeout(ctx, u.lookups.timeout)
	var list []found
	err := caught("the Resolver", func() (err error) {
		list, err = u.names.ask(limited, q, old)
		return err
	})
	cancel()
	if ctx.Err() != nil {
		return
	}
	result := Lookup{Host: q.host, Service: q.service}
	if len(list) > 0 && !slices.Equal(list, old) {
		switch failed := u.learn(ctx, q, list); {
		case failed == errStaleAnswer:
			return
		case failed != nil:
			err = failed
		default:
			l := result
			if l.Added, l.Removed = without(list, old), without(old, list); l.Added != nil || l.Removed != nil {
				u.peers.Internal(glue.Key{}).Note(Event{Kind: peer.NamesChanged, Lookup: &l})
			}
		}
	}
	if err != nil {
		result.Err = err
		u.peers.Internal(glue.Key{}).Note(Event{Kind: peer.LookupFailed, Lookup: &result})
	}
}

// errStaleAnswer: the name was removed while it was looked up.
var errStaleAnswer = errors.New("trunk: the name is not wanted any more")

// learn makes an answer the known one, and the set of it.
func (u *Upstream) learn(ctx context.Context, q question, list []found) error {
	u.changing.Lock()
	u.peers.Internal(glue.Key{}).Hold()
	defer u.peers.Internal(glue.Key{}).Release()
	defer u.changing.Unlock()
	if _, known := u.names.known[q]; !known || ctx.Err() != nil {
		return errStaleAnswer
	}
	before := u.names.known[q]
	u.names.known[q] = list
	x, err := u.names.expand(u.lines.Load().servers, nil)
	if err == nil {
		err = caught("the Method", func() error { return u.exchangePeers(x) })
	}
	if err != nil {
		u.names.known[q] = before
	}
	return err
}

// without returns the addresses of a that b does not have; nil for none.
func without(a, b []found) (list []string) {
	have := map[string]bool{}
	for _, f := range b {
		have[f.String()] = true
	}
	for _, f := range a {
		if s := f.String(); !have[s] {
			have[s] = true
			list = append(list, s)
		}
	}
	return list
}
