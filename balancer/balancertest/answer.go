package balancertest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"time"
)

// Answer is what a backend does with a request. The zero value is a status 200
// whose body is the backend's name.
type Answer struct {
	// Delay is the time to the response header. On the kit's clock it moves
	// the clock, and one longer than Retry.ReadTimeout (60 s if that is not
	// set) is a timeout. In a bubble it is waited for.
	Delay time.Duration
	// Err is why there is no answer: Refused, Reset, Garbage, or any other error, with
	// which the connection breaks.
	Err error
	// Status is the answer's status. 0: 200.
	Status int
	// Header is the answer's header.
	Header http.Header
	// Body is the answer's body. Empty: the backend's name.
	Body string
	// Cut breaks the body off after Body.
	Cut bool
	// Handler answers instead of Status, Header and Body.
	Handler http.Handler
}

// What a backend may do instead of answering.
var (
	// Refused: nothing listens there. Nothing was sent.
	Refused error = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	// Reset: the connection breaks before the answer.
	Reset error = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	// Garbage: what comes is no HTTP.
	Garbage error = garbage{}
)

// garbage is worded as net/http's error, by which alone it can be recognised.
type garbage struct{}

func (garbage) Error() string {
	return `net/http: HTTP/1.x transport connection broken: malformed HTTP response "garbage"`
}

// errTimeout is a backend that takes longer than ReadTimeout.
var errTimeout error = timeout{}

type timeout struct{}

func (timeout) Error() string { return "balancertest: timeout awaiting the response header" }
func (timeout) Timeout() bool { return true }

// response makes the answer to r, whose body has been read.
func (a *Answer) response(name string, r *http.Request) *http.Response {
	if a.Handler != nil {
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		resp := w.Result()
		resp.Request = r
		return resp
	}
	resp := &http.Response{StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.Header.Clone(), Request: r}
	if resp.StatusCode == 0 {
		resp.StatusCode = http.StatusOK
	}
	resp.Status = fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	text := a.Body
	if text == "" && !a.Cut {
		text = name
	}
	switch {
	case r.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		resp.Body = http.NoBody
	case a.Cut:
		resp.ContentLength = int64(len(text)) + 1
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(text), broken{}))
	default:
		resp.ContentLength = int64(len(text))
		resp.Body = io.NopCloser(strings.NewReader(text))
	}
	return resp
}

// broken is where a body breaks off.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
