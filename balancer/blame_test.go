package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/rawpeer"
)

func wait(d time.Duration) { <-time.After(d) }

func answer(r *rawpeer.Request) { r.Answer(200, "a") }

// What net/http itself refuses blames no peer and goes to no other, whatever it is.
func TestRefusedLocally(t *testing.T) {
	for name, spoil := range map[string]func(r *http.Request){
		"upgrade over HTTP/2":   func(r *http.Request) { r.Header.Set("Connection", "Upgrade"); r.Header.Set("Upgrade", "foo") },
		"transfer-encoding":     func(r *http.Request) { r.Header.Set("Transfer-Encoding", "x") },
		"newline in the query":  func(r *http.Request) { r.URL.RawQuery = "a=1\nb" },
		"opaque":                func(r *http.Request) { r.URL.Opaque = "//x\x01" },
		"host":                  func(r *http.Request) { r.Host = "a b" },
		"length without a body": func(r *http.Request) { r.ContentLength = 10 },
		"a header's name":       func(r *http.Request) { r.Header["a b"] = []string{"x"} },
		"a header's value":      func(r *http.Request) { r.Header["A"] = []string{"x\n"} },
		"a trailer's name":      func(r *http.Request) { r.Trailer = http.Header{"a b": {"x"}} },
		"method":                func(r *http.Request) { r.Method = "G T" },
		"no header":             func(r *http.Request) { r.Header = nil },
	} {
		for _, o := range overs() {
			for _, warm := range []bool{false, true} {
				t.Run(fmt.Sprint(name, "/", o, "/", warm), func(t *testing.T) {
					p := newTwoPeers(t, o, balancer.Config{}, rawpeer.Config{Do: answer})
					if warm {
						p.warm(t)
					}
					r := p.request("GET", nil)
					spoil(r)
					log := new(balancer.AttemptLog)
					resp, err := p.rt.RoundTrip(r.WithContext(balancer.WithLog(r.Context(), log)))
					if err == nil {
						resp.Body.Close() // this protocol can carry it
					}
					require.Equal(t, "0 0", p.fails())
					require.LessOrEqual(t, len(log.Attempts()), 1, "%v", err)
				})
			}
		}
	}
}

// A peer that does not wait for a slow caller's body is not to blame.
func TestSlowBodyOfCaller(t *testing.T) {
	for _, o := range overs() {
		t.Run(o.String(), func(t *testing.T) {
			p := newTwoPeers(t, o, balancer.Config{}, rawpeer.Config{Early: true, Do: func(r *rawpeer.Request) {
				wait(100 * time.Millisecond) // until the body is waited for
				if r.IsH2() {
					r.RefuseStream(rawpeer.InternalError)
				} else {
					r.Cut()
				}
			}})
			body, feed := io.Pipe()
			go func() {
				wait(time.Second) // net/http sends the header after 200 ms
				for range 100 {
					if _, err := feed.Write(make([]byte, 1<<10)); err != nil {
						break
					}
				}
				feed.Close()
			}()
			_, err := p.rt.RoundTrip(p.request("PUT", body))
			require.Error(t, err)
			if o.wrapped {
				return // of its connections only the error is seen
			}
			require.Equal(t, "0 0", p.fails(), "%v", err)
		})
	}
}

// An answer that comes before the request was read wins over the reset that follows it.
func TestEarlyAnswer(t *testing.T) {
	for range 10 {
		p := newTwoPeers(t, over{Proto: rawpeer.H1}, balancer.Config{}, rawpeer.Config{Early: true, Do: func(r *rawpeer.Request) {
			r.Answer(413, "too long")
			r.Reset()
		}})
		r := p.request("PUT", io.LimitReader(zeros{}, 16<<20))
		require.Equal(t, "413", p.send(t, r))
		require.Equal(t, "0 0", p.fails())
	}
}

// The end of the context ends the hold of a body that is neither read nor closed.
func TestContextEndsTheHold(t *testing.T) {
	for _, o := range overs() {
		t.Run(o.String(), func(t *testing.T) {
			p := newTwoPeers(t, o, balancer.Config{}, rawpeer.Config{Do: answer})
			ctx, cancel := context.WithCancel(context.Background())
			resp, err := p.rt.RoundTrip(p.request("GET", nil).WithContext(ctx))
			require.NoError(t, err)
			require.EqualValues(t, 1, p.up.Snapshot().Peers[0].Conns)
			cancel()
			eventually(t, func() bool { return p.up.Snapshot().Peers[0].Conns == 0 })
			resp.Body.Close()
			require.EqualValues(t, 0, p.up.Snapshot().Peers[0].Conns)
			require.Equal(t, "0 0", p.fails())
		})
	}
}

// A peer that ends each of its connections before it takes a request does not hold one.
func TestConnectionsThatDoNotLast(t *testing.T) {
	for _, o := range overs() {
		t.Run(o.String(), func(t *testing.T) {
			p := newTwoPeers(t, o, balancer.Config{}, rawpeer.Config{Do: answer, Accept: func(int, net.Conn) bool { return false }})
			require.Equal(t, "502, 200", p.send(t, p.request("GET", nil)))
			require.LessOrEqual(t, p.a.Conns(), 20)
		})
	}
}

// NginxParity over each protocol: cold callers at the same time lose nothing.
func TestParityWithColdCallers(t *testing.T) {
	for _, o := range overs() {
		t.Run(o.String(), func(t *testing.T) {
			p := newTwoPeers(t, o, balancer.NginxParity(balancer.Config{}), rawpeer.Config{Do: answer})
			done := make(chan string)
			for range 8 {
				go func() { done <- p.send(t, p.request("GET", nil)) }()
			}
			for range 8 {
				require.Equal(t, "200", <-done)
			}
			require.Equal(t, "0 0", p.fails())
		})
	}
}

// One GET whose handler breaks each connection is executed as often as Tries says, and
// once more where a connection was kept; Off: once.
func TestExecutions(t *testing.T) {
	const idle = 5
	for _, tc := range []struct {
		name  string
		retry balancer.Retry
		want  int
	}{
		{"tries 1", balancer.Retry{Tries: 1}, 2},
		{"one", balancer.Retry{Tries: 1, Executions: 1}, 1},
		{"off", balancer.Retry{Off: true}, 1},
		{"budget", balancer.Retry{Tries: 1, Budget: balancer.Budget{Share: 0.0001}}, 1},
	} {
		for _, o := range []over{{Proto: rawpeer.H1}, {Proto: rawpeer.TLS}} {
			t.Run(fmt.Sprint(tc.name, "/", o), func(t *testing.T) {
				noLeaks(t)
				hold := make(chan struct{})
				a := rawpeer.Start(t, rawpeer.Config{Proto: o.Proto, Do: func(r *rawpeer.Request) {
					if r.N < idle {
						<-hold
						r.Answer(200, "a")
						return
					}
					r.Cut()
				}})
				up := upstream(t, balancer.Config{Name: rawpeer.Name, Retry: tc.retry}, a.Addr())
				rt := up.RoundTripper(o.base(t))
				p := &twoPeers{over: o, up: up, rt: rt}
				done := make(chan string)
				for range idle {
					go func() { done <- p.send(t, p.request("GET", nil)) }()
				}
				eventually(t, func() bool { return a.Requests() == idle })
				close(hold)
				for range idle {
					require.Equal(t, "200", <-done)
				}
				require.Equal(t, "502", p.send(t, p.request("GET", nil)))
				require.Equal(t, tc.want, a.Requests()-idle)
			})
		}
	}
}

// The text of an error is short, however many peers have failed.
func TestErrorTextIsBounded(t *testing.T) {
	e := &balancer.Error{Upstream: "u"}
	for range 10_000 {
		e.Attempts = append(e.Attempts, balancer.Attempt{Addr: "10.0.0.1:80", Err: errors.New("refused")})
	}
	require.Less(t, len(e.Error()), 1000)
	require.Contains(t, e.Error(), "... 9983 more; 10.0.0.1:80: refused")
	require.Len(t, e.Unwrap(), 10_000)
	e.Attempts = e.Attempts[:17]
	require.Equal(t, 17, strings.Count(e.Error(), "refused"))
}

// For the same base there is one transport, and a base that cannot be compared is no panic.
func TestSameBaseSameTransport(t *testing.T) {
	up := newUpstream(t, balancer.Config{Name: "backend", Servers: servers("10.0.0.1:80")})
	base := &http.Transport{}
	require.Same(t, up.RoundTripper(base), up.RoundTripper(base))
	require.Same(t, up.RoundTripper(nil), up.RoundTripper((*http.Transport)(nil)))
	require.NotSame(t, up.RoundTripper(nil), up.RoundTripper(base))
	f := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errNever })
	require.NotSame(t, up.RoundTripper(f), up.RoundTripper(f))
}

var errNever = errors.New("never")
