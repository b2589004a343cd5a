package balancer_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

// Rows of "What differs" in docs/parity.md that no other test shows.

// Config.Keepalive counts idle connections of each peer.
func TestKeepaliveOfEachPeer(t *testing.T) {
	noLeaks(t)
	var dialled [2]atomic.Int32
	var round sync.WaitGroup // ends when all requests of a round are with their peers
	c := balancer.Config{Keepalive: 1}
	for i := range dialled {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			round.Done()
			round.Wait()
			io.WriteString(w, "x")
		}))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				dialled[i].Add(1)
			}
		}
		s.Start()
		t.Cleanup(s.Close)
		c.Servers = append(c.Servers, balancer.Server{Addr: addr(s)})
	}
	client := &http.Client{Transport: upstream(t, c).RoundTripper(nil)}
	for _, want := range []int32{2, 3} { // of two connections to each peer one is kept
		const requests = 4
		round.Add(requests)
		var done sync.WaitGroup
		for range requests {
			done.Go(func() { get(t, client, "http://backend/") })
		}
		done.Wait()
		require.Equal(t, []int32{want, want}, []int32{dialled[0].Load(), dialled[1].Load()})
	}
}

// Where nobody has set a timeout a try has 60 s to connect, and 60 s to answer.
func TestDefaultTimeouts(t *testing.T) {
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"connect": func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"header":  func(context.Context, string, string) (net.Conn, error) { return piped(func(net.Conn) {}), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := upstream(t, balancer.Config{}, "10.0.0.1:80")
				start := time.Now()
				_, err := (&http.Client{Transport: up.RoundTripper(&http.Transport{DialContext: dial})}).Get("http://backend/")
				require.Equal(t, 504, balancer.StatusCode(err), "%v", err)
				require.Equal(t, 60*time.Second, time.Since(start))
			})
		})
	}
}

// An idle connection is closed after Config.KeepaliveTimeout, else the transport's own limit,
// else nginx's.
func TestKeepaliveTimeout(t *testing.T) {
	for _, tc := range []struct {
		name               string
		config, base, want time.Duration
	}{
		{"nginx's default", 0, 0, time.Minute},
		{"the transport's own", 0, time.Hour, time.Hour},
		{"the configuration's", 75 * time.Second, 0, 75 * time.Second},
		{"the configuration's goes first", time.Millisecond, time.Hour, time.Millisecond},
		{"none is kept", balancer.NoKeepalive, time.Hour, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan struct{})
				base := &http.Transport{IdleConnTimeout: tc.base, DialContext: func(context.Context, string, string) (net.Conn, error) {
					client, peer := net.Pipe()
					go func() {
						defer close(gone)
						requests := bufio.NewReader(peer)
						for {
							if _, err := http.ReadRequest(requests); err != nil {
								return
							}
							io.WriteString(peer, hello)
						}
					}()
					return client, nil
				}}
				up := upstream(t, balancer.Config{KeepaliveTimeout: tc.config}, "10.0.0.1:80")
				get(t, &http.Client{Transport: up.RoundTripper(base)}, "http://backend/")
				start := time.Now()
				<-gone
				require.Equal(t, tc.want, time.Since(start))
			})
		})
	}
}

// A body may take its time, whatever the timeout to the header.
func TestBodyIsNotTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			return piped(func(c net.Conn) {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\na")
				time.Sleep(time.Hour)
				io.WriteString(c, "b")
			}), nil
		}
		up := upstream(t, balancer.Config{Retry: balancer.Retry{ReadTimeout: time.Second}}, "10.0.0.1:80")
		_, body := get(t, &http.Client{Transport: up.RoundTripper(&http.Transport{DialContext: dial})}, "http://backend/")
		require.Equal(t, "ab", body)
	})
}

// piped is a connection to a peer that reads the request, and then answers.
func piped(answer func(net.Conn)) net.Conn {
	client, peer := net.Pipe()
	go func() {
		if _, err := http.ReadRequest(bufio.NewReader(peer)); err == nil {
			answer(peer)
		}
		io.Copy(io.Discard, peer)
		peer.Close()
	}()
	return client
}
