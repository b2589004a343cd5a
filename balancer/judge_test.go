package balancer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/rawpeer"
)

// over is a way to reach peers: by each protocol with trunk's own transports, and by a
// base of another's.
type over struct {
	rawpeer.Proto
	wrapped bool
}

func (o over) String() string {
	if o.wrapped {
		return "wrapped base"
	}
	return string(o.Proto)
}

// overs are all ways.
func overs() []over {
	var all []over
	for _, p := range rawpeer.Protos {
		all = append(all, over{Proto: p})
	}
	return append(all, over{rawpeer.H1, true})
}

// base returns the transport that is given to RoundTripper.
func (o over) base(t *testing.T) http.RoundTripper {
	tr := o.Transport()
	t.Cleanup(tr.CloseIdleConnections)
	if o.wrapped {
		return struct{ http.RoundTripper }{tr}
	}
	return tr
}

// twoPeers are the scripted peer a and the healthy peer b, behind an upstream.
type twoPeers struct {
	over
	a, b *rawpeer.Peer
	up   *balancer.Upstream
	rt   http.RoundTripper
}

// newTwoPeers starts a, which does what do says, and b, which answers.
func newTwoPeers(t *testing.T, o over, c balancer.Config, a rawpeer.Config) *twoPeers {
	t.Helper()
	noLeaks(t)
	p := &twoPeers{over: o}
	a.Proto = o.Proto
	p.a = rawpeer.Start(t, a)
	p.b = rawpeer.Start(t, rawpeer.Config{Proto: o.Proto, Do: func(r *rawpeer.Request) { r.Answer(200, "b") }})
	c.Name = rawpeer.Name
	p.up = upstream(t, c, p.a.Addr(), p.b.Addr())
	p.rt = p.up.RoundTripper(o.base(t))
	return p
}

// send sends a request, and returns what the caller and the peers saw of it:
// "502, 200" ($upstream_status), or the status alone where no peer was asked.
func (p *twoPeers) send(t *testing.T, r *http.Request) string {
	t.Helper()
	log := new(balancer.AttemptLog)
	resp, err := p.rt.RoundTrip(r.WithContext(balancer.WithLog(r.Context(), log)))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
	}
	return log.Status()
}

func (p *twoPeers) request(method string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), method, p.Scheme()+"://"+rawpeer.Name+"/", body)
	if err != nil {
		panic(err)
	}
	return r
}

// warm makes a connection to each of the peers, so that the next request goes to a.
func (p *twoPeers) warm(t *testing.T) {
	t.Helper()
	require.Equal(t, "200", p.send(t, p.request("GET", nil)))
	require.Equal(t, "200", p.send(t, p.request("GET", nil)))
}

// fails returns the failures counted of a and b.
func (p *twoPeers) fails() string {
	s := p.up.Snapshot().Peers
	return fmt.Sprint(s[0].Fails, " ", s[1].Fails)
}

// What a try proves, by how far it came (docs/parity.md, section 8): each row over each
// protocol, and over a base of another's, for a request that may be sent twice and one
// that may not.
func TestVerdicts(t *testing.T) {
	reset := func(r *rawpeer.Request) { r.Reset() }
	cut := func(r *rawpeer.Request) { r.Cut() }
	for _, tc := range []struct {
		name string
		warm bool // the connection was used before
		h1   bool // the row is of HTTP/1 alone
		h2   bool // of HTTP/2 alone
		// do is what a does with its first request, once: or, if always, with each.
		do     func(r *rawpeer.Request)
		always bool
		parity bool
		// unsure: over TLS, and over a base of another's, it may be that the connection broke off.
		unsure bool
		// For GET, and for POST: $upstream_status, and the failures of a.
		get, post   string
		fails       int64
		postFails   int64
		seen, posts int // how often a gets it
	}{
		{name: "cold, cut before the first byte", do: cut, get: "502, 200", fails: 1, seen: 1, post: "502", postFails: 1, posts: 1},
		{name: "cold, reset before the first byte", do: reset, get: "502, 200", fails: 1, seen: 1, post: "502", postFails: 1, posts: 1},
		{name: "warm, cut before the first byte", warm: true, do: cut, get: "200", seen: 2, post: "502", posts: 1},
		{name: "warm, reset before the first byte", warm: true, do: reset, get: "200", seen: 2, post: "502", posts: 1},
		{name: "warm, cut, and cut again", warm: true, do: cut, always: true, get: "502, 200", fails: 1, seen: 2, post: "502", posts: 1},
		{name: "warm, cut before the first byte, nginx", warm: true, do: cut, parity: true, get: "502, 200", fails: 1, seen: 1, post: "502", postFails: 1, posts: 1},
		{name: "cold, cut in the header", do: func(r *rawpeer.Request) { r.Partly() }, get: "502, 200", fails: 1, seen: 1, post: "502", postFails: 1, posts: 1},
		{name: "warm, cut in the header", warm: true, h1: true, do: func(r *rawpeer.Request) { r.Partly() }, get: "502, 200", fails: 1, seen: 1, post: "502", postFails: 1, posts: 1},
		{name: "not HTTP", h1: true, unsure: true, do: func(r *rawpeer.Request) { r.Raw("GARBAGE\r\n\r\n") }, get: "502", fails: 1, seen: 1, post: "502", postFails: 1, posts: 1},

		{name: "REFUSED_STREAM", h2: true, do: func(r *rawpeer.Request) { r.RefuseStream(rawpeer.RefusedStream) }, get: "200", seen: 2, post: "200", posts: 2},
		{name: "REFUSED_STREAM, warm", warm: true, h2: true, do: func(r *rawpeer.Request) { r.RefuseStream(rawpeer.RefusedStream) }, get: "200", seen: 2, post: "200", posts: 2},
		{name: "REFUSED_STREAM, nginx", parity: true, h2: true, do: func(r *rawpeer.Request) { r.RefuseStream(rawpeer.RefusedStream) }, get: "200", seen: 2, post: "200", posts: 2},
		{name: "REFUSED_STREAM for ever", h2: true, do: func(r *rawpeer.Request) { r.RefuseStream(rawpeer.RefusedStream) }, always: true,
			get: "502, 200", fails: 1, seen: 2, post: "502, 200", postFails: 1, posts: 2},
		{name: "GOAWAY, not processed", h2: true, do: func(r *rawpeer.Request) { r.GoAway(false, rawpeer.NoError) }, get: "200", seen: 2, post: "200", posts: 2},
		{name: "GOAWAY, not processed, warm", warm: true, h2: true, do: func(r *rawpeer.Request) { r.GoAway(false, rawpeer.NoError) }, get: "200", seen: 2, post: "200", posts: 2},
		{name: "GOAWAY for ever", h2: true, do: func(r *rawpeer.Request) { r.GoAway(false, rawpeer.NoError); r.Cut() }, always: true,
			get: "502, 200", fails: 1, seen: 2, post: "502, 200", postFails: 1, posts: 2},
		{name: "GOAWAY, answered all the same", h2: true, do: func(r *rawpeer.Request) { r.GoAway(true, rawpeer.NoError); r.Answer(200, "a") }, get: "200", seen: 1, post: "200", posts: 1},
		{name: "GOAWAY, processed, and cut", h2: true, do: func(r *rawpeer.Request) { r.GoAway(true, rawpeer.NoError); r.Cut() },
			get: "502, 200", fails: 1, seen: 1, post: "502", postFails: 1, posts: 1},
		{name: "GOAWAY with an error for this request", h2: true, do: func(r *rawpeer.Request) { r.GoAway(true, rawpeer.CompressionError); r.Cut() },
			get: "-", seen: 1, post: "-", posts: 1},
		{name: "GOAWAY with an error for this request, warm", warm: true, h2: true, do: func(r *rawpeer.Request) { r.GoAway(true, rawpeer.CompressionError); r.Cut() },
			get: "-", seen: 1, post: "-", posts: 1},
		{name: "GOAWAY with an error, not covered, cold", h2: true, do: func(r *rawpeer.Request) { r.GoAway(false, rawpeer.CompressionError) },
			get: "502, 200", seen: 1, post: "502", posts: 1},
		{name: "a stream's own error", h2: true, do: func(r *rawpeer.Request) { r.RefuseStream(rawpeer.InternalError) }, get: "502, 200", fails: 1, seen: 1, post: "502", postFails: 1, posts: 1},
	} {
		for _, o := range overs() {
			if tc.h1 && o.IsH2() || tc.h2 && !o.IsH2() {
				continue
			}
			for _, method := range []string{"GET", "POST"} {
				t.Run(fmt.Sprint(tc.name, "/", o, "/", method), func(t *testing.T) {
					var done atomic.Bool
					do := func(r *rawpeer.Request) {
						if tc.warm && r.N == 0 || !tc.always && done.Swap(true) {
							r.Answer(200, "a")
							return
						}
						tc.do(r)
					}
					c := balancer.Config{}
					if tc.parity {
						c = balancer.NginxParity(c)
					}
					p := newTwoPeers(t, o, c, rawpeer.Config{Do: func(r *rawpeer.Request) {
						if tc.warm && r.N == 0 {
							r.Answer(200, "a")
							return
						}
						do(r)
					}})
					if tc.warm {
						p.warm(t)
					}
					before := p.a.Requests()
					if method == "GET" && tc.unsure && (o.wrapped || o.Proto == rawpeer.TLS) {
						tc.get = "502, 200"
					}
					var body io.Reader
					want, fails, seen := tc.get, tc.fails, tc.seen
					if method == "POST" {
						want, fails, seen = tc.post, tc.postFails, tc.posts
						body = strings.NewReader("hello")
					}
					require.Equal(t, want, p.send(t, p.request(method, body)))
					require.Equal(t, fmt.Sprint(fails, " 0"), p.fails())
					require.Equal(t, seen, p.a.Requests()-before, "how often a got it")
				})
			}
		}
	}
}
