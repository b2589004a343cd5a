package balancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// An Attempt is what one peer did with a request. One that found no peer at all
// is in the list too, as in nginx's log: Addr is then the upstream's name, and Err
// is ErrNoLivePeers.
type Attempt struct {
	// Addr is the peer's address, Name the text of its server line.
	Addr, Name string
	// Backup says that it is of the backup group.
	Backup bool
	// Outcome is what the attempt means for the peer. Before the end of the
	// response body it is what it will be if nothing goes wrong.
	Outcome Outcome
	// Kind is the reason why this was no answer to give to the caller. 0: it was.
	Kind Kind
	// Status is the status of the answer, or nginx's verdict where there was
	// none: 502, or 504 for a timeout. 0: the caller went away before.
	Status int
	// Err is why there was no answer; nil if there was one.
	Err error
	// Header is the time to the response header, 0 if none came; Duration the
	// time to the end of the attempt, the response body included.
	Header, Duration time.Duration
}

// String is one line: the address, and the error or the status.
func (a Attempt) String() string {
	switch {
	case errors.Is(a.Err, ErrNoLivePeers):
		return "no live peers"
	case a.Err != nil:
		return fmt.Sprintf("%s: %v", a.Addr, a.Err)
	}
	return fmt.Sprintf("%s: status %d", a.Addr, a.Status)
}

// LogValue makes the attempt a group of slog attributes.
func (a Attempt) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("peer", a.Addr), slog.String("outcome", a.Outcome.String()), slog.Int("status", a.Status)}
	if a.Kind != 0 {
		attrs = append(attrs, slog.String("kind", a.Kind.String()))
	}
	if a.Header != 0 {
		attrs = append(attrs, slog.Duration("header", a.Header))
	}
	attrs = append(attrs, slog.Duration("duration", a.Duration))
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", a.Err.Error()))
	}
	return slog.GroupValue(attrs...)
}

// MarshalJSON spells the error as its text, and the times in nanoseconds.
func (a Attempt) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Addr     string        `json:"addr"`
		Name     string        `json:"name,omitempty"`
		Backup   bool          `json:"backup,omitempty"`
		Outcome  Outcome       `json:"outcome"`
		Kind     string        `json:"kind,omitempty"`
		Status   int           `json:"status,omitempty"`
		Err      string        `json:"error,omitempty"`
		Header   time.Duration `json:"header,omitempty"`
		Duration time.Duration `json:"duration"`
	}{a.Addr, a.Name, a.Backup, a.Outcome, a.Kind.String(), a.Status, errorText(a.Err), a.Header, a.Duration})
}
