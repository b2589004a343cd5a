package balancer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Log is the attempts of one request, for its caller: put it in the request's
// context with WithLog. It is complete, but for the durations, when RoundTrip
// returns, and final when the response body was read or closed. Goroutines may
// share it.
type Log struct {
	mu       sync.Mutex
	attempts []Attempt
}

// Attempts returns the peers that were asked so far, in order.
func (l *Log) Attempts() []Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Attempt(nil), l.attempts...)
}

// Addr returns the peers' addresses as nginx's $upstream_addr has them:
// "10.0.0.1:80, 10.0.0.2:80"; the upstream's name where no peer could be had.
func (l *Log) Addr() string {
	return l.join(func(a *Attempt) string { return a.Addr })
}

// Status returns the answers as nginx's $upstream_status has them: "502, 200";
// "-" where the caller went away.
func (l *Log) Status() string {
	return l.join(func(a *Attempt) string {
		if a.Status == 0 {
			return "-"
		}
		return strconv.Itoa(a.Status)
	})
}

// ResponseTime returns the durations in seconds as nginx's $upstream_response_time
// has them: "0.003, 0.120".
func (l *Log) ResponseTime() string {
	return l.join(func(a *Attempt) string { return fmt.Sprintf("%.3f", a.Duration.Truncate(time.Millisecond).Seconds()) })
}

func (l *Log) join(text func(*Attempt) string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.attempts) == 0 {
		return "-"
	}
	var b strings.Builder
	for i := range l.attempts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text(&l.attempts[i]))
	}
	return b.String()
}

// add notes an attempt. A nil log notes nothing.
func (l *Log) add(a Attempt) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts = append(l.attempts, a)
}

// settle replaces the attempt at i when it has ended.
func (l *Log) settle(i int, a Attempt) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i < len(l.attempts) {
		l.attempts[i] = a
	}
}

// len returns how many attempts there are; 0 for a nil log.
func (l *Log) len() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.attempts)
}

// carry is what a context brings along, found in one look-up.
type carry struct {
	input     Input
	log       *Log
	decisions func(*Decision)
}

type carryKey struct{}

func carried(ctx context.Context) *carry {
	c, _ := ctx.Value(carryKey{}).(*carry)
	return c
}

// with returns a context that brings along what ctx does, but for the change.
func with(ctx context.Context, change func(*carry)) context.Context {
	c := &carry{}
	if old := carried(ctx); old != nil {
		*c = *old
	}
	change(c)
	return context.WithValue(ctx, carryKey{}, c)
}

// WithInput returns a context whose requests are balanced by in. It goes before
// Config.Input and the method's variables; the fields that in leaves empty
// come from these.
func WithInput(ctx context.Context, in Input) context.Context {
	return with(ctx, func(c *carry) { c.input = in })
}

// WithLog returns a context whose requests note their attempts in l.
func WithLog(ctx context.Context, l *Log) context.Context {
	return with(ctx, func(c *carry) { c.log = l })
}
