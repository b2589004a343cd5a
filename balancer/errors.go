package balancer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/trunklb/trunk/peer"
)

// ErrNoLivePeers is in the tree of an error when no peer could be had: nginx's
// "no live upstreams". Test for it with errors.Is.
var ErrNoLivePeers = peer.ErrNoLivePeers

// Errors of requests that never reached the choice of a peer, and of a wrong
// order of calls. Test for them with errors.Is.
var (
	// ErrClosed: the upstream was closed.
	ErrClosed = errors.New("trunk: the upstream is closed")
	// ErrOtherHost: the URL names another host, and Config.OnlyUpstream is set.
	ErrOtherHost = errors.New("trunk: the URL's host is not the upstream's name")
	// ErrNotHeld: Try.Done without a Next before it, or a second time.
	ErrNotHeld = peer.ErrNotHeld
)

// ErrNextPeer, given to Try.Done, sends the request on to another peer without
// counting a failure, as nginx does with a 403 or 404.
//
//lint:ignore ST1012 it is no failure, and reads as what it asks for
var ErrNextPeer = errors.New("trunk: another peer is wanted")

// Outcome says how an attempt on a peer ended.
type Outcome = peer.Outcome

// The outcomes; see peer.
const (
	OK        = peer.OK
	Failed    = peer.Failed
	Next      = peer.Next
	Abandoned = peer.Abandoned
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

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "trunk: upstream %q: ", e.Upstream)
	if e.Cause != nil {
		b.WriteString(strings.TrimPrefix(e.Cause.Error(), "trunk: "))
	}
	for i, a := range e.Attempts {
		if i > 0 || e.Cause != nil {
			b.WriteString("; ")
		}
		switch {
		case errors.Is(a.Err, ErrNoLivePeers):
			b.WriteString("no live peers")
		case a.Err != nil:
			fmt.Fprintf(&b, "%s: %v", a.Addr, a.Err)
		default:
			fmt.Fprintf(&b, "%s: status %d", a.Addr, a.Status)
		}
	}
	return b.String()
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

// A BodyError is an error of the caller's request body while it was read. It
// says nothing about the peer.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "trunk: reading the request body: " + e.Err.Error() }

func (e *BodyError) Unwrap() error { return e.Err }

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
	switch {
	case errors.As(err, &body):
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
