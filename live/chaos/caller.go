package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/trunklb/trunk/balancer"
)

// A call is one request of a caller: what it is, drawn from the world's seed and its
// number, and what came of it.
type call struct {
	id     int
	method string
	body   bodyKind
	sum    checksum // of its body
	wrong  int      // index in wrongs, 0: it is right
	stop   stopKind

	ctx    context.Context
	cancel context.CancelFunc
	log    *balancer.AttemptLog

	status   int
	text     string
	err      error // there was no answer
	bodyErr  error // its body broke off
	bodyRead bool  // some of the request's body was read
	stopped  bool  // the caller has gone before the end
	endless  bool  // it was not at its end after all its tries' time
}

// bodyKind is what a request has for a body.
type bodyKind uint8

const (
	noBody bodyKind = iota
	withGetBody
	withoutGetBody
	slowBody // without GetBody; its reader waits in the middle
)

// stopKind is how a caller goes away.
type stopKind uint8

const (
	stays stopKind = iota
	goneBefore
	goneSoon    // it cancels after some milliseconds
	deadline    // likewise by a deadline
	leavesBody  // it neither reads nor closes the answer's body, and cancels
	closesEarly // it closes the body after a byte
)

// wrongs are requests that net/http or a peer may refuse.
var wrongs = []func(*http.Request){
	nil,
	func(r *http.Request) { r.Header.Set("Connection", "Upgrade"); r.Header.Set("Upgrade", "foo") },
	func(r *http.Request) { r.Host = "a b" },
	func(r *http.Request) { r.URL.RawQuery = "a\nb" },
	func(r *http.Request) { r.ContentLength = 10; r.Body = nil; r.GetBody = nil },
	func(r *http.Request) { r.Header.Set("Transfer-Encoding", "gzip") },
	func(r *http.Request) { r.Header["X Bad"] = []string{"a"} },
	func(r *http.Request) { r.Header.Set("X-Bad", "a\nb") },
	func(r *http.Request) { r.Trailer = http.Header{"Content-Length": nil} },
	func(r *http.Request) { r.URL.Opaque = "a b" },
	func(r *http.Request) { r.Header.Set("Keep-Alive", "timeout=5"); r.Header.Set("Connection", "x-some") },
}

var methods = []string{"GET", "GET", "GET", "GET", "HEAD", "PUT", "PUT", "DELETE", "OPTIONS", "POST", "POST", "PATCH"}

// newCall draws the n-th call of a world.
func (w *world) newCall(n int) *call {
	r := rand.New(rand.NewPCG(w.seed, uint64(w.number)<<32|uint64(n)))
	c := &call{id: n, method: "GET", log: new(balancer.AttemptLog)}
	if w.wire.proto != line {
		c.method = methods[r.IntN(len(methods))]
		if c.method == "PUT" || c.method == "POST" || c.method == "PATCH" {
			c.body = bodyKind(r.IntN(3))
			if r.IntN(60) == 0 {
				c.body = slowBody
			}
		}
		if r.IntN(60) == 0 {
			c.wrong = 1 + r.IntN(len(wrongs)-1)
		}
	}
	if r.IntN(12) == 0 {
		c.stop = stopKind(1 + r.IntN(5))
	}
	c.ctx, c.cancel = context.WithCancel(w.ctx)
	switch soon := time.Duration(r.IntN(20_000)) * time.Microsecond; c.stop {
	case goneBefore:
		c.cancel()
	case goneSoon:
		time.AfterFunc(soon, c.cancel)
	case deadline:
		ctx, cancel := context.WithTimeout(c.ctx, soon)
		both := c.cancel
		c.ctx, c.cancel = ctx, func() { cancel(); both() }
	}
	c.ctx = balancer.WithLog(c.ctx, c.log)
	c.ctx = balancer.WithInput(c.ctx, balancer.Input{Key: itoa(n)})
	if c.body != noBody {
		c.sum.Write(c.bytes())
	}
	return c
}

// idempotent reports whether the call may be sent to another peer after it was sent.
func (c *call) idempotent() bool { return c.method != "POST" && c.method != "PATCH" }

// bytes is the call's body: of some, longer than any buffer on the way.
func (c *call) bytes() []byte {
	size := 10 + c.id%100
	if c.id%16 == 0 {
		size = 300_000
	}
	return bytes.Repeat([]byte{byte('a' + c.id%26)}, size)
}

// request makes the HTTP request.
func (c *call) request(w *world) *http.Request {
	r := &http.Request{Method: c.method, URL: &url.URL{Scheme: w.scheme(), Host: upstreamName, Path: "/", RawQuery: "id=" + itoa(c.id)},
		Header: http.Header{idHeader: {itoa(c.id)}}}
	if c.body != noBody {
		body := c.bytes()
		r.ContentLength = int64(len(body))
		r.Body = &readBody{Reader: bytes.NewReader(body), c: c}
		if c.body == withGetBody {
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		}
		if c.id%3 == 0 {
			r.ContentLength = -1
		}
	}
	if wrong := wrongs[c.wrong]; wrong != nil {
		wrong(r)
	}
	return r.WithContext(c.ctx)
}

// readBody is a body that knows whether it was read, and is slow where that is wanted.
type readBody struct {
	*bytes.Reader
	c      *call
	waited bool
}

func (b *readBody) Read(p []byte) (int, error) {
	b.c.bodyRead = true
	if b.c.body == slowBody {
		p = p[:min(len(p), max(1, int(b.Size())/2))]
		if int64(b.Len()) < b.Size() && !b.waited {
			b.waited = true
			select {
			case <-time.After(400 * time.Millisecond):
			case <-b.c.ctx.Done():
			}
		}
	}
	return b.Reader.Read(p)
}

func (b *readBody) Close() error { return nil }

// do makes the call, and notes how it ended.
func (w *world) do(c *call) {
	endless := time.AfterFunc(w.longest(), func() { c.endless = true; c.cancel() })
	w.send(c)
	if c.endless = !endless.Stop() && c.endless; !c.endless {
		c.stopped = c.ctx.Err() != nil
	}
	c.cancel()
}

// noLive reports whether the call has found no peer.
func (c *call) noLive() bool { return errors.Is(c.err, balancer.ErrNoLivePeers) }

func (c *call) String() string {
	var b strings.Builder
	b.WriteString(c.method)
	b.WriteString([]string{"", ", body with GetBody", ", body without GetBody", ", slow body"}[c.body])
	if c.wrong > 0 {
		b.WriteString(", wrong request " + itoa(c.wrong))
	}
	b.WriteString([]string{"", ", gone before", ", cancelled soon", ", deadline soon", ", body left", ", body closed early"}[c.stop])
	return b.String()
}
