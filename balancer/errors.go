package balancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/trunklb/trunk/peer"
)

// What errors.Is finds in the tree of an error.
var (
	// ErrNoLivePeers: no peer was available; nginx's "no live upstreams".
	ErrNoLivePeers = peer.ErrNoLivePeers
	// ErrClosed: the upstream was closed.
	ErrClosed = errors.New("trunk: the upstream is closed")
	// ErrOtherHost: the URL names another host, and Config.OnlyUpstream is set.
	ErrOtherHost = errors.New("trunk: the URL's host is not the upstream's name")
	// ErrNotHeld: Try.Done, Header, Connected or FirstByte without a Next before it, or
	// after Done.
	ErrNotHeld = peer.ErrNotHeld
	// ErrNoServer: Remove or UpdateServer for an address that no server line has.
	ErrNoServer = errors.New("trunk: no server has this address")
	// ErrInUse: WaitDrained for a peer that takes requests like any other.
	ErrInUse = errors.New("trunk: the peer is neither removed nor down nor draining")
)

// What the caller of Try.Done may give it beside the errors of a peer. Neither blames
// the peer; see Try.Done.
var (
	// ErrNextPeer asks for another peer, as nginx does after a 403 or 404.
	ErrNextPeer = errors.New("trunk: another peer is wanted")
	// ErrAbandoned says that the caller gave up before the peer had answered.
	ErrAbandoned = errors.New("trunk: the caller has given up")
)

// Outcome says how an attempt on a peer ended.
type Outcome = peer.Outcome

// The outcomes; see peer.
const (
	OK        = peer.OK
	Failed    = peer.Failed
	Next      = peer.Next
	Abandoned = peer.Abandoned
)

// An Error is a request that got no answer. Its text lists the attempts.
type Error struct {
	// Upstream is the upstream's name.
	Upstream string
	// Attempts are the peers that were asked, in order.
	Attempts []Attempt
	// Cause is what ended the request other than a peer: an error of its
	// input or its body, or ErrClosed. nil: the last attempt ended it.
	Cause error
}

// maxTold is how many attempts the text of an Error lists, before the last one.
const maxTold = 16

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "trunk: upstream %q: ", e.Upstream)
	if e.Cause != nil {
		b.WriteString(strings.TrimPrefix(e.Cause.Error(), "trunk: "))
	}
	for i, a := range e.Attempts {
		rest := len(e.Attempts) - 1 - i // but for the last one
		if i > maxTold && rest > 0 {
			continue
		}
		if i > 0 || e.Cause != nil {
			b.WriteString("; ")
		}
		if i == maxTold && rest > 0 {
			fmt.Fprintf(&b, "... %d more", rest)
			continue
		}
		b.WriteString(a.String())
	}
	return b.String()
}

// LogValue makes the error a group of slog attributes.
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("upstream", e.Upstream), slog.Int("status", StatusCode(e))}
	if e.Cause != nil {
		attrs = append(attrs, slog.String("cause", e.Cause.Error()))
	}
	return slog.GroupValue(append(attrs, slog.Any("attempts", e.Attempts))...)
}

// MarshalJSON spells the cause as its text.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Upstream string    `json:"upstream"`
		Status   int       `json:"status"`
		Cause    string    `json:"cause,omitempty"`
		Attempts []Attempt `json:"attempts"`
	}{e.Upstream, StatusCode(e), errorText(e.Cause), e.Attempts})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Unwrap returns the cause and the errors of the attempts.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, len(e.Attempts)+1)
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	for _, a := range e.Attempts {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// Timeout reports whether the request ended because time was up: the peer's or
// the caller's own. It makes Error a net.Error to those who look for one.
func (e *Error) Timeout() bool { return isTimeout(e.last()) }

// Temporary returns false; net.Error wants it.
func (e *Error) Temporary() bool { return false }

// last returns what ended the request.
func (e *Error) last() error {
	if e.Cause != nil || len(e.Attempts) == 0 {
		return e.Cause
	}
	return e.Attempts[len(e.Attempts)-1].Err
}

// An InputError is a request without what the method needs.
type InputError struct {
	// Field is what is missing, Method the method that needs it.
	Field, Method string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("trunk: %s needs %s, and neither it nor Request.RemoteAddr was given", e.Method, e.Field)
}

// A RequestError is a request that cannot be sent to any peer. None was asked.
type RequestError struct {
	// Field is the field of the http.Request, Value its value, Reason what is wrong with it.
	Field, Value, Reason string
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("trunk: the request's %s %s (%.64q)", e.Field, e.Reason, e.Value)
}

// A BodyError is an error of the caller's request body while it was read. It
// says nothing about the peer.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "trunk: reading the request body: " + e.Err.Error() }

// Unwrap returns Err.
func (e *BodyError) Unwrap() error { return e.Err }

// MarshalJSON spells the error as its text.
func (e *BodyError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Err string `json:"error"`
	}{errorText(e.Err)})
}

// A BaseError is a base transport that trunk cannot use. The RoundTripper that
// was made of it returns it for every request of the upstream.
type BaseError struct{ Reason string }

func (e *BaseError) Error() string { return "trunk: the base transport cannot be used: " + e.Reason }

// StatusClientClosed is nginx's status for a client that went away before the answer.
const StatusClientClosed = 499

// StatusCode returns the status that nginx would answer with, for an error of
// Upstream.RoundTripper or Try.Err: 504 for a timeout of the last peer, 499 for
// a caller that went away, 400 for one whose body could not be read, else 502.
// 200 for nil.
func StatusCode(err error) int {
	if err == nil {
		return http.StatusOK
	}
	var e *Error
	if !errors.As(err, &e) {
		return errorStatus(err)
	}
	if e.Cause == nil && len(e.Attempts) > 0 {
		if a := e.Attempts[len(e.Attempts)-1]; a.Status != 0 {
			return a.Status
		}
	}
	return errorStatus(e.last())
}

func errorStatus(err error) int {
	var body *BodyError
	var request *RequestError
	switch {
	case errors.As(err, &body), errors.As(err, &request):
		return http.StatusBadRequest
	case errors.Is(err, context.Canceled):
		return StatusClientClosed
	case isTimeout(err):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// ErrorHandler answers for an httputil.ReverseProxy (its ErrorHandler) what nginx
// would: StatusCode(err), with the status as the text.
func ErrorHandler(w http.ResponseWriter, _ *http.Request, err error) {
	status := StatusCode(err)
	text := http.StatusText(status)
	if status == StatusClientClosed {
		text = "Client Closed Request"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, fmt.Sprintf("%d %s\n", status, text))
}

// isTimeout reports whether err, or what it wraps, says that time was up.
func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
