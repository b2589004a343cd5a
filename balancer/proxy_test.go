package balancer_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

// proxy is an httputil.ReverseProxy over trunk. Each request's Log goes to logs.
func proxy(t *testing.T, up *balancer.Upstream, logs chan<- *balancer.AttemptLog) *httptest.Server {
	t.Helper()
	target, _ := url.Parse("http://backend")
	rp := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:    up.RoundTripper(nil),
		ErrorHandler: balancer.ErrorHandler,
		ErrorLog:     quiet,
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log := new(balancer.AttemptLog)
		defer func() { logs <- log }()
		rp.ServeHTTP(w, r.WithContext(balancer.WithLog(r.Context(), log)))
	}))
	s.Config.ErrorLog = quiet
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// Four backends, A and B alive, C and D dead, behind a ReverseProxy: the chains that
// were recorded from nginx. With max_fails=0 the dead ones are asked again and
// again; with max_fails=1 on C it is asked once. Tries are the number of servers,
// so no request is lost.
func TestFourBackends(t *testing.T) {
	noLeaks(t)
	for _, tc := range []struct {
		name string
		c    int    // max_fails of C
		want string // the peers that each request asked; the last one answered
	}{
		{"max_fails=0", balancer.NoMaxFails, "A B CDA B DA CB A DB"},
		{"max_fails=1 on C", 1, "A B CDA B DA B"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			addrs := []string{addr(server(t, "A", nil)), addr(server(t, "B", nil)), refusing(t), refusing(t)}
			names := map[string]string{}
			c := balancer.Config{Clock: newClock().read}
			for i, a := range addrs {
				names[a] = string(rune('A' + i))
				s := balancer.Server{Addr: a, MaxFails: balancer.NoMaxFails}
				if i == 2 {
					s.MaxFails = tc.c
				}
				c.Servers = append(c.Servers, s)
			}
			logs := make(chan *balancer.AttemptLog, 1)
			p := proxy(t, upstream(t, c), logs)
			var got []string
			for i := range strings.Count(tc.want, " ") + 1 {
				method := "GET"
				if i == 3 {
					method = "POST"
				}
				r, _ := http.NewRequest(method, p.URL, nil)
				resp, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				require.Equal(t, 200, resp.StatusCode)
				chain, statuses := "", ""
				log := <-logs
				for i, a := range log.Attempts() {
					chain += names[a.Addr]
					if i > 0 {
						statuses = "502, " + statuses
					}
				}
				require.Equal(t, statuses+"200", log.Status())
				require.True(t, strings.HasSuffix(chain, resp.Header.Get("X-Backend")))
				got = append(got, chain)
			}
			require.Equal(t, tc.want, strings.Join(got, " "))
		})
	}
}

// What the client of a ReverseProxy sees of a failure is what it would see of nginx.
func TestErrorHandler(t *testing.T) {
	noLeaks(t)
	never := make(chan struct{})
	silent := speaker(t, func(int, net.Conn, *http.Request) bool { <-never; return false })
	t.Cleanup(func() { close(never) })
	for _, tc := range []struct {
		name  string
		addrs []string
		want  int
		text  string
		log   string
	}{
		{"all refuse", []string{refusing(t), refusing(t)}, 502, "502 Bad Gateway\n", "502, 502"},
		{"the last is silent", []string{refusing(t), silent}, 504, "504 Gateway Timeout\n", "502, 504"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up := upstream(t, balancer.Config{Retry: balancer.Retry{ReadTimeout: 30 * time.Millisecond}}, tc.addrs...)
			logs := make(chan *balancer.AttemptLog, 1)
			p := proxy(t, up, logs)
			resp, err := http.Get(p.URL)
			require.NoError(t, err)
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			require.Equal(t, tc.want, resp.StatusCode)
			require.Equal(t, tc.text, string(body))
			log := <-logs
			require.Equal(t, tc.log, log.Status())
			require.Equal(t, strings.Join(tc.addrs, ", "), log.Addr())
			require.Regexp(t, `^\d+\.\d{3}, \d+\.\d{3}$`, log.ResponseTime())
			for i, text := range strings.Split(log.ResponseTime(), ", ") {
				seconds, err := strconv.ParseFloat(text, 64)
				require.NoError(t, err)
				require.InDelta(t, log.Attempts()[i].Duration.Seconds(), seconds, 0.00101, "cut off to milliseconds")
			}
		})
	}
}

// A client that leaves before the answer: 499 in the log, and the peer is let go.
func TestClientLeaves(t *testing.T) {
	noLeaks(t)
	arrived := make(chan struct{})
	a := server(t, "a", func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	up := upstream(t, balancer.Config{}, addr(a), addr(a))
	logs := make(chan *balancer.AttemptLog, 1)
	p := proxy(t, up, logs)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; cancel() }()
	r, _ := http.NewRequestWithContext(ctx, "GET", p.URL, nil)
	_, err := http.DefaultClient.Do(r)
	require.ErrorIs(t, err, context.Canceled)
	log := <-logs
	require.Equal(t, "-", log.Status())
	require.Equal(t, balancer.Abandoned, log.Attempts()[0].Outcome)
	require.Zero(t, up.Snapshot().Peers[0].Fails)
}

// A tunnel through the proxy holds its peer until it is closed.
func TestTunnel(t *testing.T) {
	noLeaks(t)
	a := server(t, "a", func(w http.ResponseWriter, r *http.Request) {
		c, rw, _ := w.(http.Hijacker).Hijack()
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, rw)
	})
	up := upstream(t, balancer.Config{}, addr(a))
	logs := make(chan *balancer.AttemptLog, 1)
	p := proxy(t, up, logs)
	c, err := net.Dial("tcp", addr(p))
	require.NoError(t, err)
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	require.NoError(t, err)
	require.Contains(t, string(buf[:n]), "101 Switching")
	for !strings.Contains(string(buf[:n]), "\r\n\r\n") {
		m, err := c.Read(buf[n:])
		require.NoError(t, err)
		n += m
	}
	io.WriteString(c, "ping")
	_, err = io.ReadFull(c, buf[:4])
	require.NoError(t, err)
	require.Equal(t, "ping", string(buf[:4]))
	require.EqualValues(t, 1, up.Snapshot().Peers[0].Conns)
	c.Close()
	log := <-logs
	require.Equal(t, "101", log.Status())
	for up.Snapshot().Peers[0].Conns > 0 {
		runtime.Gosched() // the proxy closes the tunnel in a goroutine of its own
	}
}
