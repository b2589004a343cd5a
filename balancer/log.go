package balancer

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// AttemptLog is the attempts of one request, for its caller: put it in the request's
// context with WithLog. It is complete, but for the durations, when RoundTrip
// returns, and final when the response body was read or closed. Goroutines may
// share it.
type AttemptLog struct {
	mu       sync.Mutex
	attempts []Attempt
}

// Attempts returns the peers that were asked so far, in order.
func (l *AttemptLog) Attempts() []Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Attempt(nil), l.attempts...)
}

// Addr returns the peers' addresses as nginx's $upstream_addr has them:
// "10.0.0.1:80, 10.0.0.2:80"; the upstream's name where no peer was available.
func (l *AttemptLog) Addr() string {
	return l.join(func(a *Attempt) string { return a.Addr })
}

// Status returns the answers as nginx's $upstream_status has them: "502, 200";
// "-" where the caller went away.
func (l *AttemptLog) Status() string {
	return l.join(func(a *Attempt) string {
		if a.Status == 0 {
			return "-"
		}
		return strconv.Itoa(a.Status)
	})
}

// ResponseTime returns the durations in seconds as nginx's $upstream_response_time
// has them: "0.003, 0.120".
func (l *AttemptLog) ResponseTime() string {
	return l.join(func(a *Attempt) string { return fmt.Sprintf("%.3f", a.Duration.Truncate(time.Millisecond).Seconds()) })
}

func (l *AttemptLog) join(text func(*Attempt) string) string {
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
func (l *AttemptLog) add(a Attempt) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts = append(l.attempts, a)
}

// settle replaces the attempt at i when it has ended.
func (l *AttemptLog) settle(i int, a Attempt) {
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
func (l *AttemptLog) len() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.attempts)
}

// LogValue makes the log a group of slog attributes, under the names of nginx's variables.
func (l *AttemptLog) LogValue() slog.Value {
	return slog.GroupValue(slog.String("upstream_addr", l.Addr()), slog.String("upstream_status", l.Status()),
		slog.String("upstream_response_time", l.ResponseTime()))
}

// MarshalJSON writes the attempts.
func (l *AttemptLog) MarshalJSON() ([]byte, error) { return json.Marshal(l.Attempts()) }
