package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

// clock is a fake clock that starts at a time like ours.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.advance(50 * 365 * 24 * time.Hour)
	return c
}

func (c *clock) advance(d time.Duration) { c.now.Add(int64(d)) }
func (c *clock) read() time.Duration     { return time.Duration(c.now.Load()) }

// fixture is an upstream over a stub transport. Peers are "a", "b", ...: what each
// does with its requests, one after the other, is a script, whose last word
// stays. Words: a status; "refuse"; "reset"; "timeout"; "dialtimeout"; "garbage";
// "cut" (200 whose body breaks off).
type fixture struct {
	t      *testing.T
	clock  *clock
	up     *balancer.Upstream
	rt     http.RoundTripper
	mu     sync.Mutex
	script map[string][]string
	chain  []string
	bodies map[string]string // what each peer has read, in order, with commas
	open   atomic.Int32      // answers' bodies that were not closed
	before func(r *http.Request)
}

// backendError is an error of a peer.
var (
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

type timeoutError string

func (e timeoutError) Error() string { return string(e) }
func (timeoutError) Timeout() bool   { return true }

func newFixture(t *testing.T, c balancer.Config, script string) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: newClock(), script: map[string][]string{}, bodies: map[string]string{}}
	for peer := range strings.SplitSeq(script, ";") {
		name, words, _ := strings.Cut(strings.TrimSpace(peer), ":")
		backup := strings.HasSuffix(name, "+")
		name = strings.TrimSuffix(name, "+")
		f.script[name] = strings.Fields(words)
		if !hasServer(c.Servers, name) {
			c.Servers = append(c.Servers, balancer.Server{Addr: name, Backup: backup})
		}
	}
	c.Name, c.Clock, c.Resolver = "backend", f.clock.read, balancer.NoLookup
	up, err := balancer.New(context.Background(), c)
	require.NoError(t, err)
	f.up, f.rt = up, up.RoundTripper(f)
	t.Cleanup(func() {
		require.Zero(t, f.open.Load(), "bodies of answers left open")
		for _, s := range up.Snapshot().Peers {
			require.Zero(t, s.Conns, "peer %s is still held", s.Server.Addr)
			require.Zero(t, s.OldestHeld)
		}
	})
	return f
}

func hasServer(servers []balancer.Server, addr string) bool {
	for _, s := range servers {
		if s.Addr == addr {
			return true
		}
	}
	return false
}

// RoundTrip is the base.
func (f *fixture) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	name := r.URL.Host
	words := f.script[name]
	word := words[0]
	if len(words) > 1 {
		f.script[name] = words[1:]
	}
	f.chain = append(f.chain, name)
	f.mu.Unlock()
	if f.before != nil {
		f.before(r)
	}
	switch word {
	case "refuse":
		closeRequest(r)
		return nil, errRefused
	case "dialtimeout":
		closeRequest(r)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: timeoutError("i/o timeout")}
	case "silent":
		closeRequest(r)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		if f.bodies[name] != "" {
			f.bodies[name] += ","
		}
		f.bodies[name] += string(data)
		f.mu.Unlock()
	}
	switch word {
	case "reset":
		return nil, errReset
	case "timeout":
		return nil, timeoutError("net/http: timeout awaiting response headers")
	case "garbage": // as an http.Transport shows it: the answer has begun, and the connection stands
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GetConn(name)
		trace.GotConn(httptrace.GotConnInfo{Conn: nil})
		trace.WroteHeaders()
		trace.GotFirstResponseByte()
		return nil, errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP status code "x"`)
	}
	var status int
	if word == "cut" {
		status = 200
	} else {
		fmt.Sscan(word, &status)
	}
	f.open.Add(1)
	resp := &http.Response{
		StatusCode: status, ProtoMajor: 1, Header: http.Header{"X-Backend": {name}}, Request: r,
		Body: &stubBody{Reader: strings.NewReader(name), cut: word == "cut", f: f},
	}
	return resp, nil
}

func closeRequest(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// stubBody is an answer's body that knows whether it was closed, and how often.
type stubBody struct {
	io.Reader
	cut    bool
	f      *fixture
	closed atomic.Int32
}

func (b *stubBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.cut {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *stubBody) Close() error {
	if b.closed.Add(1) == 1 {
		b.f.open.Add(-1)
	} else {
		b.f.t.Error("an answer's body was closed twice")
	}
	return nil
}

// sentBody is a caller's request body that knows the same.
type sentBody struct {
	io.Reader
	t      *testing.T
	closed atomic.Int32
}

func (b *sentBody) Close() error {
	if b.closed.Add(1) > 1 {
		b.t.Error("the caller's body was closed twice")
	}
	return nil
}

// send sends a request, reads its answer to the end, and describes it: "200 a", or
// StatusCode of the error: "err 502".
func (f *fixture) send(r *http.Request) string {
	f.t.Helper()
	f.mu.Lock()
	f.chain = nil
	f.mu.Unlock()
	resp, err := f.rt.RoundTrip(r)
	if err != nil {
		return fmt.Sprint("err ", balancer.StatusCode(err))
	}
	data, _ := io.ReadAll(resp.Body)
	require.NoError(f.t, resp.Body.Close())
	require.Same(f.t, r, resp.Request)
	return fmt.Sprint(resp.StatusCode, " ", string(data))
}

// asked returns the peers that were asked for the last request.
func (f *fixture) asked() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.chain, " ")
}

// fails returns the failures of the peers: "a=1 b=0".
func (f *fixture) fails() string {
	var out []string
	for _, s := range f.up.Snapshot().Peers {
		if s.Fails != 0 {
			out = append(out, fmt.Sprintf("%s=%d", s.Server.Addr, s.Fails))
		}
	}
	return strings.Join(out, " ")
}

// request makes a request for the upstream. kind of body: "" none, "get" with
// GetBody, "once" without.
func (f *fixture) request(ctx context.Context, method, body string) (*http.Request, *sentBody) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://backend/p?k=v", nil)
	require.NoError(f.t, err)
	if body == "" {
		return r, nil
	}
	b := &sentBody{Reader: strings.NewReader("hello"), t: f.t}
	r.Body, r.ContentLength = b, 5
	if body == "get" {
		r.GetBody = func() (io.ReadCloser, error) { return &sentBody{Reader: strings.NewReader("hello"), t: f.t}, nil }
	}
	f.t.Cleanup(func() {
		require.EqualValues(f.t, 1, b.closed.Load(), "how often the caller's body was closed")
		require.Same(f.t, b, r.Body, "the caller's request was changed")
	})
	return r, b
}
