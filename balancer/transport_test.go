package balancer_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/port"
)

// noLeaks fails the test if goroutines or connections of it remain. Call it first:
// it looks when all other cleanups have run.
func noLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		deadline := time.Now().Add(5 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<16)
				t.Fatalf("goroutines were left:\n%s", stacks[:runtime.Stack(stacks, true)])
			}
			runtime.Gosched()
		}
	})
}

// server is a backend on a real socket.
func server(t *testing.T, name string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	if h == nil {
		h = func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name) }
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Backend", name)
		h(w, r)
	}))
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func addr(s *httptest.Server) string { return s.Listener.Addr().String() }

// refusing returns an address at which nobody listens.
func refusing(t *testing.T) string { return newPort(t).Addr() }

// newPort takes a port at which nobody listens yet, until the test ends.
func newPort(t testing.TB) *port.Port {
	t.Helper()
	p, err := port.New()
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// speaker is a backend that speaks for itself: it calls speak for each request
// that it has read, n counting from 0, and closes the connection when that returns false.
func speaker(t *testing.T, speak func(n int, c net.Conn, r *http.Request) bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var n atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				br := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					if !speak(int(n.Add(1)-1), c, r) {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// upstream makes an upstream named "backend", and closes it at the end.
func upstream(t *testing.T, c balancer.Config, addrs ...string) *balancer.Upstream {
	t.Helper()
	if c.Name == "" {
		c.Name = "backend"
	}
	for _, a := range addrs {
		c.Servers = append(c.Servers, balancer.Server{Addr: a})
	}
	up, err := balancer.New(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, s := range up.Snapshot().Peers {
			require.Zero(t, s.Conns, "%s is still held", s.Server.Addr)
		}
		up.Close()
	})
	return up
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp, string(body)
}

// An http.Client whose transport is trunk: 5, 1, 1 over real sockets.
func TestClient(t *testing.T) {
	noLeaks(t)
	var hosts sync.Map
	h := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { hosts.Store(r.Host, true); io.WriteString(w, name) }
	}
	a, b, c := server(t, "a", h("a")), server(t, "b", h("b")), server(t, "c", h("c"))
	up := upstream(t, balancer.Config{Servers: []balancer.Server{
		{Addr: addr(a), Weight: 5}, {Addr: addr(b)}, {Addr: addr(c)},
	}})
	client := &http.Client{Transport: up.RoundTripper(nil)}
	var picks []string
	for range 7 {
		resp, name := get(t, client, "http://backend/hello")
		picks = append(picks, name)
		require.Equal(t, "backend", resp.Request.URL.Host)
	}
	require.Equal(t, "a a b a c a a", strings.Join(picks, " "))
	_, ok := hosts.Load("backend")
	require.True(t, ok, "Host is the logical name")
}

// A URL's host with a port, or in capitals, is the same name.
func TestNames(t *testing.T) {
	noLeaks(t)
	a, other := server(t, "a", nil), server(t, "other", nil)
	up := upstream(t, balancer.Config{Name: "Backend"}, addr(a))
	client := &http.Client{Transport: up.RoundTripper(nil)}
	for _, u := range []string{"http://backend/", "http://BACKEND/", "http://backend:8080/", "http://Backend:80"} {
		_, name := get(t, client, u)
		require.Equal(t, "a", name, u)
	}
	_, name := get(t, client, other.URL)
	require.Equal(t, "other", name, "another host goes to the base")

	only := upstream(t, balancer.Config{OnlyUpstream: true}, addr(a))
	_, err := (&http.Client{Transport: only.RoundTripper(nil)}).Get(other.URL)
	require.ErrorIs(t, err, balancer.ErrOtherHost)
}

// An upstream for Start needs no name; one for URLs needs one that can be their host, or
// all requests would pass it by.
func TestNameIsAHost(t *testing.T) {
	for _, name := range []string{"", "http://backend", "backend:80", "backend/", "[::1]"} {
		up, err := balancer.New(context.Background(), balancer.Config{Name: name, Servers: []balancer.Server{{Addr: "10.0.0.1:80"}}})
		require.NoError(t, err)
		_, err = (&http.Client{Transport: up.RoundTripper(nil)}).Get("http://x/")
		var e *balancer.ConfigError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "Name", e.Field)
		require.Equal(t, strconv.Quote(name), e.Value)
	}
	for name, url := range map[string]string{"backend": "http://backend:81/", "::1": "http://[::1]/", "a_b": "http://a_b/"} {
		up := newUpstream(t, balancer.Config{Name: name, Servers: servers("10.0.0.1:80")})
		asked := up.RoundTripper(roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Status: r.URL.Host, Body: http.NoBody, Request: r}, nil
		}))
		r, err := http.NewRequest("GET", url, nil)
		require.NoError(t, err)
		resp, err := asked.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, "10.0.0.1:80", resp.Status, name)
	}
}

// A redirect to another host never reaches a backend; one to the upstream's name,
// or to the peer's own address, is balanced, and cookies belong to the logical name.
func TestRedirects(t *testing.T) {
	noLeaks(t)
	other := server(t, "other", nil)
	var self string
	h := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL+"/there", http.StatusFound)
		case "/name":
			http.Redirect(w, r, "http://backend/end", http.StatusFound)
		case "/self":
			http.Redirect(w, r, "http://"+self+"/end?q=1", http.StatusFound)
		case "/there":
			t.Error("a request for another host reached a backend")
		default:
			io.WriteString(w, "end "+r.Host)
		}
	}
	a := server(t, "a", h)
	self = addr(a)
	up := upstream(t, balancer.Config{}, addr(a))
	client := &http.Client{Transport: up.RoundTripper(nil)}
	_, body := get(t, client, "http://backend/away")
	require.Equal(t, "other", body)
	for _, path := range []string{"/name", "/self"} {
		resp, body := get(t, client, "http://backend"+path)
		require.Equal(t, "end backend", body)
		require.Equal(t, "backend", resp.Request.URL.Host)
	}
	keep := upstream(t, balancer.Config{KeepRedirects: true}, addr(a))
	client = &http.Client{Transport: keep.RoundTripper(nil), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, _ := get(t, client, "http://backend/self")
	require.Equal(t, "http://"+self+"/end?q=1", resp.Header.Get("Location"))
}

// Peers on unix sockets, and numeric addresses in every form, without a resolver.
func TestUnixPeer(t *testing.T) {
	noLeaks(t)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	up := upstream(t, balancer.Config{}, "unix:"+path)
	_, body := get(t, &http.Client{Transport: up.RoundTripper(nil)}, "http://backend/")
	require.Equal(t, "backend", body)
}

// The user's transport is cloned: its proxy is not asked, its dialler dials the
// peer, and it is not changed.
func TestClone(t *testing.T) {
	noLeaks(t)
	a := server(t, "a", nil)
	var dialled []string
	base := &http.Transport{
		Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("the proxy was asked") },
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled = append(dialled, network+" "+addr)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
		Dial: func(string, string) (net.Conn, error) { return nil, errors.New("Dial was used") },
	}
	up := upstream(t, balancer.Config{}, addr(a))
	_, body := get(t, &http.Client{Transport: up.RoundTripper(base)}, "http://backend/")
	require.Equal(t, "a", body)
	require.Equal(t, []string{"tcp " + addr(a)}, dialled)
	require.NotNil(t, base.Proxy)
	require.NotNil(t, base.Dial)

	base.DialTLSContext = base.DialContext
	_, err := (&http.Client{Transport: up.RoundTripper(base)}).Get("http://backend/")
	var refused *balancer.BaseError
	require.ErrorAs(t, err, &refused)
}

// tlsPeers starts n TLS servers for the name example.com, with HTTP/2, and returns a
// transport that trusts them.
func tlsPeers(t *testing.T, n int, h http.HandlerFunc) (addrs []string, roots *x509.CertPool, servers []*httptest.Server) {
	for range n {
		s := httptest.NewUnstartedServer(h)
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(s.Close)
		if roots == nil {
			roots = x509.NewCertPool()
		}
		roots.AddCert(s.Certificate())
		addrs, servers = append(addrs, addr(s)), append(servers, s)
	}
	return addrs, roots, servers
}

// TLS asks for and verifies the logical name, and HTTP/2 is spoken where the
// user's transport would have spoken it.
func TestTLS(t *testing.T) {
	noLeaks(t)
	var sni sync.Map
	addrs, roots, _ := tlsPeers(t, 2, func(w http.ResponseWriter, r *http.Request) {
		sni.Store(r.TLS.ServerName, true)
		fmt.Fprint(w, r.Proto)
	})
	dial := (&net.Dialer{}).DialContext
	for _, tc := range []struct {
		name string
		base *http.Transport
		want string
	}{
		{"TLSClientConfig alone is HTTP/1.1, as ever", &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, "HTTP/1.1"},
		{"forced", &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}, "HTTP/2.0"},
		{"a DialContext alone is HTTP/1.1, as ever", &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: dial}, "HTTP/1.1"},
		{"switched off", &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}, "HTTP/1.1"},
		{"an HTTP/2 of the user's own is not shared by the peers", &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{
				"h2": func(string, *tls.Conn) http.RoundTripper { panic("shared") }}}, "HTTP/2.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up := upstream(t, balancer.Config{Name: "example.com"}, addrs...)
			client := &http.Client{Transport: up.RoundTripper(tc.base)}
			for range 4 {
				_, proto := get(t, client, "https://example.com/")
				require.Equal(t, tc.want, proto)
			}
			tc.base.CloseIdleConnections()
		})
	}
	_, ok := sni.Load("example.com")
	require.True(t, ok)

	t.Run("a zero transport speaks HTTP/2", func(t *testing.T) {
		// Its roots are the system's, so the handshake fails: but for that it must
		// have offered h2, also when it was used before.
		offered := make(chan []string, 1)
		s := httptest.NewUnstartedServer(nil)
		s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			offered <- h.SupportedProtos
			return nil, errors.New("seen")
		}}
		s.Config.ErrorLog = quiet
		s.StartTLS()
		t.Cleanup(s.Close)
		up := upstream(t, balancer.Config{Name: "example.com"}, addr(s))
		_, err := (&http.Client{Transport: up.RoundTripper(&http.Transport{})}).Get("https://example.com/")
		require.Error(t, err)
		require.Contains(t, <-offered, "h2")
	})
}

// One HTTP/2 connection that breaks under many requests is one failure.
func TestBrokenHTTP2ConnectionCountsOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		nx   balancer.Nginx
		want int64
	}{{"once", balancer.Nginx{}, 1}, {"each", balancer.Nginx{EveryStream: true}, 100}} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
			const n = 100
			arrived := make(chan struct{}, n)
			never := make(chan struct{})
			t.Cleanup(func() { close(never) })
			addrs, roots, servers := tlsPeers(t, 1, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/warm" {
					return
				}
				arrived <- struct{}{}
				select {
				case <-r.Context().Done():
				case <-never:
				}
			})
			up := upstream(t, balancer.Config{Name: "example.com", Nginx: tc.nx, Servers: []balancer.Server{
				{Addr: addrs[0], MaxFails: 1000}, {Addr: refusing(t), Down: true},
			}})
			rt := up.RoundTripper(&http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}})
			client := &http.Client{Transport: rt}
			get(t, client, "https://example.com/warm")
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					_, err := client.Get("https://example.com/")
					require.Error(t, err)
				})
			}
			for range n {
				<-arrived
			}
			servers[0].CloseClientConnections()
			wg.Wait()
			require.Equal(t, tc.want, up.Snapshot().Peers[0].Fails)
		})
	}
}

// A peer that refuses is passed by, also with a body that cannot be rewound.
func TestRefusedPeer(t *testing.T) {
	noLeaks(t)
	echo := server(t, "b", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	for _, method := range []string{"GET", "POST", "PUT"} {
		up := upstream(t, balancer.Config{}, refusing(t), addr(echo))
		var body io.Reader
		if method != "GET" {
			body = &sentBody{Reader: strings.NewReader("hello"), t: t}
		}
		r, err := http.NewRequest(method, "http://backend/", body)
		require.NoError(t, err)
		log := new(balancer.AttemptLog)
		r = r.WithContext(balancer.WithLog(r.Context(), log))
		resp, err := (&http.Client{Transport: up.RoundTripper(nil)}).Do(r)
		require.NoError(t, err)
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if method != "GET" {
			require.Equal(t, "hello", string(got))
			require.EqualValues(t, 1, body.(*sentBody).closed.Load())
		}
		require.Equal(t, "502, 200", log.Status())
		require.EqualValues(t, 1, up.Snapshot().Peers[0].Fails)
		require.Equal(t, balancer.KindError|balancer.KindConnect, log.Attempts()[0].Kind)
	}
}

// What a peer does to a connection, by the kind that it is. GET, so without a trace.
func TestKindsOverSockets(t *testing.T) {
	for _, tc := range []struct {
		name  string
		speak string // then the connection is closed
		want  balancer.Kind
	}{
		{"closed before an answer", "", balancer.KindError},
		{"closed in the status line", "HTTP/1.1 20", balancer.KindError},
		{"closed in a header line", "HTTP/1.1 200 OK\r\nX-Part", balancer.KindError},
		{"a header line without a colon", "HTTP/1.1 200 OK\r\nX-Part\r\nX: y\r\n\r\n", balancer.KindInvalidHeader},
		{"a NUL in a header name", "HTTP/1.1 200 OK\r\nX-\x00: y\r\n\r\n", balancer.KindInvalidHeader},
		{"no HTTP", "GARBAGE not http at all\r\n\r\n", balancer.KindInvalidHeader},
		{"too long a header", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 11<<20) + "\r\n\r\n", balancer.KindInvalidHeader},
	} {
		for _, parity := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, " ", parity), func(t *testing.T) {
				noLeaks(t)
				stay := make(chan struct{})
				a := speaker(t, func(n int, c net.Conn, r *http.Request) bool {
					io.WriteString(c, tc.speak)
					if tc.want == balancer.KindInvalidHeader {
						<-stay // or its end could be taken for the reason
					}
					return false
				})
				t.Cleanup(func() { close(stay) })
				c := balancer.Config{Retry: balancer.Retry{On: withAll}}
				if parity {
					c = balancer.NginxParity(c)
				}
				up := upstream(t, c, a, addr(server(t, "b", nil)))
				log := new(balancer.AttemptLog)
				r, _ := http.NewRequestWithContext(balancer.WithLog(context.Background(), log), "GET", "http://backend/", nil)
				resp, err := up.RoundTripper(nil).RoundTrip(r)
				require.NoError(t, err)
				resp.Body.Close()
				require.Equal(t, tc.want, log.Attempts()[0].Kind, "%v", log.Attempts()[0].Err)
				require.Equal(t, "502, 200", log.Status())
			})
		}
	}
}

// Timeouts of one try: connect, send, header.
func TestTimeouts(t *testing.T) {
	const short = 30 * time.Millisecond
	hang := make(chan struct{})
	silent := speaker(t, func(int, net.Conn, *http.Request) bool { <-hang; return false })
	t.Cleanup(func() { close(hang) })
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // accepts, by the kernel, and never reads
	require.NoError(t, err)
	t.Cleanup(func() { deaf.Close() })
	for _, tc := range []struct {
		name  string
		retry balancer.Retry
		base  http.RoundTripper
		addr  string
		body  int
		kind  balancer.Kind
	}{
		{name: "header", retry: balancer.Retry{ReadTimeout: short}, addr: silent, kind: balancer.KindTimeout},
		{name: "header, the base's", base: &http.Transport{ResponseHeaderTimeout: short}, addr: silent, kind: balancer.KindTimeout},
		{name: "header, another base", retry: balancer.Retry{ReadTimeout: short}, base: other{}, addr: silent, kind: balancer.KindTimeout},
		{name: "connect", retry: balancer.Retry{ConnectTimeout: short}, base: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, addr: "10.0.0.1:80", kind: balancer.KindTimeout | balancer.KindConnect},
		{name: "send", retry: balancer.Retry{SendTimeout: short}, addr: deaf.Addr().String(), body: 64 << 20, kind: balancer.KindTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.retry.Tries = 1
			up := upstream(t, balancer.Config{Retry: tc.retry}, tc.addr, tc.addr)
			r, _ := http.NewRequest("PUT", "http://backend/", io.LimitReader(zeros{}, int64(tc.body)))
			r.ContentLength = int64(tc.body)
			if tc.body == 0 {
				r.Body = nil
			}
			rt := up.RoundTripper(tc.base)
			_, err := rt.RoundTrip(r)
			var e *balancer.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tc.kind, e.Attempts[0].Kind, "%v", err)
			require.Equal(t, 504, balancer.StatusCode(err))
			require.True(t, e.Timeout())
			require.EqualValues(t, 1, up.Snapshot().Peers[0].Fails)
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// other is a base that is no *http.Transport.
type other struct{}

var plain = &http.Transport{}

func (other) RoundTrip(r *http.Request) (*http.Response, error) { return plain.RoundTrip(r) }

// What a base of another's cannot do is refused.
func TestOtherBase(t *testing.T) {
	noLeaks(t)
	a := server(t, "a", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host+" "+r.URL.RequestURI()) })
	up := upstream(t, balancer.Config{}, refusing(t), addr(a))
	client := &http.Client{Transport: up.RoundTripper(other{})}
	resp, body := get(t, client, "http://backend/p?q=1")
	require.Equal(t, "backend /p?q=1", body)
	require.Equal(t, "backend", resp.Request.URL.Host)
	_, err := client.Get("https://backend/")
	var refused *balancer.BaseError
	require.ErrorAs(t, err, &refused)

	up = upstream(t, balancer.Config{}, "unix:/s")
	_, err = up.RoundTripper(other{}).RoundTrip(httptest.NewRequest("GET", "http://backend/", nil))
	require.ErrorAs(t, err, &refused)
	plain.CloseIdleConnections()
}

// A slow dial obeys the caller.
func TestSlowDial(t *testing.T) {
	noLeaks(t)
	dialling := make(chan struct{})
	up := upstream(t, balancer.Config{}, "10.0.0.1:80", "10.0.0.2:80")
	rt := up.RoundTripper(&http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialling)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-dialling; cancel() }()
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://backend/", nil)
	_, err := rt.RoundTrip(r)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, up.Snapshot().Peers[0].Fails)
	require.Equal(t, 499, balancer.StatusCode(err))
}

// A kept-alive connection that is dead: net/http sends the request again by itself,
// which nginx takes for a failure that costs no try.
func TestStaleConnection(t *testing.T) {
	for _, tc := range []struct {
		name   string
		parity bool
		method string
		want   string // $upstream_status of the second request
		fails  int64
	}{
		{"sent again over a new connection", false, "GET", "200", 0},
		{"a failure, as in nginx", true, "GET", "502, 200", 1},
		{"a failure, as in nginx", true, "PUT", "502, 200", 1},
		{"not sent again, and no failure: it may be the connection's age", false, "POST", "502", 0},
		{"not sent again", true, "POST", "502", 1},
	} {
		t.Run(tc.name+" "+tc.method, func(t *testing.T) {
			noLeaks(t)
			a := speaker(t, func(n int, c net.Conn, r *http.Request) bool {
				if n == 1 {
					return false
				}
				io.WriteString(c, hello)
				return true
			})
			// Tries 1: the try must have been given back for b to be asked.
			c := balancer.Config{Retry: balancer.Retry{Tries: 1}}
			if tc.parity {
				c = balancer.NginxParity(c)
			}
			up := upstream(t, c, a, addr(server(t, "b", nil)))
			client := &http.Client{Transport: up.RoundTripper(nil)}
			get(t, client, "http://backend/1")
			get(t, client, "http://backend/2")
			log := new(balancer.AttemptLog)
			var body io.Reader
			if tc.method != "GET" {
				body = strings.NewReader("hello")
			}
			r, _ := http.NewRequestWithContext(balancer.WithLog(context.Background(), log), tc.method, "http://backend/3", body)
			resp, err := client.Do(r)
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			require.Equal(t, tc.want, log.Status())
			require.Equal(t, tc.fails, up.Snapshot().Peers[0].Fails)
		})
	}
}

// The peer is held until the body is read to its end or closed, and let go at
// once where there is none.
func TestHeld(t *testing.T) {
	noLeaks(t)
	a := server(t, "a", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/204" {
			w.WriteHeader(204)
			return
		}
		io.WriteString(w, "a")
	})
	up := upstream(t, balancer.Config{}, addr(a))
	rt := up.RoundTripper(nil)
	send := func(method, path string) *http.Response {
		r, _ := http.NewRequest(method, "http://backend"+path, nil)
		resp, err := rt.RoundTrip(r)
		require.NoError(t, err)
		return resp
	}
	conns := func() int64 { return up.Snapshot().Peers[0].Conns }
	for _, none := range []*http.Response{send("HEAD", "/"), send("GET", "/204")} {
		require.Zero(t, conns())
		none.Body.Close()
	}
	resp := send("GET", "/")
	require.EqualValues(t, 1, conns())
	io.ReadAll(resp.Body)
	require.Zero(t, conns(), "read to its end")
	resp.Body.Close()
	resp = send("GET", "/")
	resp.Body.Close()
	require.Zero(t, conns(), "closed")
	resp.Body.Close()
	require.Zero(t, conns(), "closed twice")
}

// Responses whole: informational ones, trailers, and what is flushed is seen at once.
func TestResponseWhole(t *testing.T) {
	noLeaks(t)
	goOn := make(chan struct{})
	a := server(t, "a", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(200)
		io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		<-goOn
		io.WriteString(w, "second")
		w.Header().Set("X-Sum", "12")
	})
	up := upstream(t, balancer.Config{}, addr(a))
	var hints []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, " ", h.Get("Link")))
		return nil
	}}
	for _, method := range []string{"GET", "PUT"} {
		var body io.Reader
		if method == "PUT" {
			body = strings.NewReader("traced")
		}
		r, _ := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), method, "http://backend/", body)
		resp, err := up.RoundTripper(nil).RoundTrip(r)
		require.NoError(t, err)
		p := make([]byte, 6)
		_, err = io.ReadFull(resp.Body, p)
		require.NoError(t, err)
		require.Equal(t, "first ", string(p))
		goOn <- struct{}{}
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "second", string(rest))
		require.Equal(t, "12", resp.Trailer.Get("X-Sum"))
		resp.Body.Close()
	}
	require.Equal(t, []string{"103 </style>", "103 </style>"}, hints)
}

// After a 101 the body is the connection, and the peer is held until it is closed.
func TestUpgrade(t *testing.T) {
	noLeaks(t)
	a := server(t, "a", func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, rw)
	})
	up := upstream(t, balancer.Config{}, addr(a))
	r, _ := http.NewRequest("GET", "http://backend/", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	resp, err := up.RoundTripper(nil).RoundTrip(r)
	require.NoError(t, err)
	rw := resp.Body.(io.ReadWriteCloser)
	_, err = io.WriteString(rw, "ping")
	require.NoError(t, err)
	p := make([]byte, 4)
	_, err = io.ReadFull(rw, p)
	require.NoError(t, err)
	require.Equal(t, "ping", string(p))
	require.EqualValues(t, 1, up.Snapshot().Peers[0].Conns)
	require.NoError(t, rw.(interface{ CloseWrite() error }).CloseWrite())
	_, err = rw.Read(p)
	require.Equal(t, io.EOF, err)
	require.EqualValues(t, 1, up.Snapshot().Peers[0].Conns, "the end of one direction is not the end")
	rw.Close()
	require.Zero(t, up.Snapshot().Peers[0].Conns)
}

// A request that net/http refuses to send says nothing about the peers.
func TestRequestWrongInItself(t *testing.T) {
	noLeaks(t)
	up := upstream(t, balancer.Config{}, addr(server(t, "a", nil)), addr(server(t, "b", nil)))
	rt := up.RoundTripper(nil)
	for name, spoil := range map[string]func(r *http.Request){
		"header name":  func(r *http.Request) { r.Header["a b"] = []string{"x"} },
		"header value": func(r *http.Request) { r.Header["A"] = []string{"x\ny"} },
		"method":       func(r *http.Request) { r.Method = "G T" },
		"scheme":       func(r *http.Request) { r.URL.Scheme = "ftp" },
		"no header":    func(r *http.Request) { r.Header = nil },
		"long body":    func(r *http.Request) { r.ContentLength = 2 },
		"short body":   func(r *http.Request) { r.ContentLength = 20 },
		"trailer":      func(r *http.Request) { r.Trailer = http.Header{"a b": {"x"}}; r.ContentLength = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := http.NewRequest("PUT", "http://backend/", nil)
			b := &sentBody{Reader: strings.NewReader("hello"), t: t}
			r.Body, r.ContentLength = b, 5
			spoil(r)
			resp, err := rt.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			// A peer may have answered what came before the body turned out
			// to be too long.
			require.True(t, err != nil || name == "long body")
			for _, s := range up.Snapshot().Peers {
				require.Zero(t, s.Fails)
				require.Zero(t, s.Conns)
			}
			for b.closed.Load() == 0 {
				runtime.Gosched() // the transport may close it after it has returned
			}
			require.EqualValues(t, 1, b.closed.Load())
		})
	}
	_, err := rt.RoundTrip(&http.Request{})
	require.Error(t, err)
}

// Several upstreams in one transport.
func TestJoin(t *testing.T) {
	noLeaks(t)
	one := upstream(t, balancer.Config{Name: "one"}, addr(server(t, "1", nil)))
	two := upstream(t, balancer.Config{Name: "two"}, addr(server(t, "2", nil)))
	other := server(t, "other", nil)
	rt, err := balancer.Join(nil, one, two)
	require.NoError(t, err)
	client := &http.Client{Transport: rt}
	for u, want := range map[string]string{"http://one/": "1", "http://TWO:80/": "2", other.URL: "other"} {
		_, got := get(t, client, u)
		require.Equal(t, want, got)
	}
	client.CloseIdleConnections()
	_, err = balancer.Join(nil, one, upstream(t, balancer.Config{Name: "ONE"}, "10.0.0.1:80"))
	var config *balancer.ConfigError
	require.ErrorAs(t, err, &config)
	_, err = balancer.Join(&http.Transport{DialTLSContext: (&net.Dialer{}).DialContext}, one)
	var refused *balancer.BaseError
	require.ErrorAs(t, err, &refused)
}

// Close lets nobody in; who is in goes on.
func TestClose(t *testing.T) {
	noLeaks(t)
	up := upstream(t, balancer.Config{}, addr(server(t, "a", nil)))
	rt := up.RoundTripper(nil)
	r, _ := http.NewRequest("GET", "http://backend/", nil)
	resp, err := rt.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, up.Close())
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "a", string(body))
	resp.Body.Close()
	_, err = rt.RoundTrip(r)
	require.ErrorIs(t, err, balancer.ErrClosed)
	try := up.Start(context.Background(), balancer.Input{})
	require.False(t, try.Next())
	require.ErrorIs(t, try.Err(), balancer.ErrClosed)
	require.NoError(t, up.Close())
}

// The winner's body outlives the contexts of the tries.
func TestWinnersBodyIsNotCancelled(t *testing.T) {
	noLeaks(t)
	goOn := make(chan struct{})
	slow := server(t, "b", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-goOn
		io.WriteString(w, "late")
	})
	for _, base := range []http.RoundTripper{nil, other{}} {
		c := balancer.NginxParity(balancer.Config{Retry: balancer.Retry{ReadTimeout: 50 * time.Millisecond}})
		up := upstream(t, c, refusing(t), addr(slow))
		r, _ := http.NewRequest("GET", "http://backend/", nil)
		resp, err := up.RoundTripper(base).RoundTrip(r)
		require.NoError(t, err)
		timer := time.NewTimer(100 * time.Millisecond) // past the try's own limit
		<-timer.C
		goOn <- struct{}{}
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "late", string(body))
		resp.Body.Close()
	}
	plain.CloseIdleConnections()
}

// While one of three backends dies and comes back, again and again, no request
// that can be sent again is lost.
func TestNothingIsLost(t *testing.T) {
	noLeaks(t)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	b, c := server(t, "b", h), server(t, "c", h)
	at := newPort(t)
	l, err := at.Listen()
	require.NoError(t, err)
	up := upstream(t, balancer.Config{Resolution: 10 * time.Millisecond, Servers: []balancer.Server{
		{Addr: at.Addr(), FailTimeout: 10 * time.Millisecond}, {Addr: addr(b)}, {Addr: addr(c)},
	}})
	client := &http.Client{Transport: up.RoundTripper(nil)}
	stop := make(chan struct{})
	var killer, clients sync.WaitGroup
	killer.Go(func() {
		for {
			s := &http.Server{Handler: h}
			done := make(chan struct{})
			go func() { defer close(done); s.Serve(l) }()
			pause := time.NewTimer(20 * time.Millisecond)
			<-pause.C
			s.Close()
			<-done
			select {
			case <-stop:
				return
			default:
			}
			if l, err = at.Listen(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 16 {
		clients.Go(func() {
			for range 300 {
				resp, err := client.Get("http://backend/")
				if err != nil {
					t.Error(err)
					return
				}
				// A body that breaks off after its header is lost in any proxy;
				// two bytes come with the header.
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Error(resp.Status)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	killer.Wait()
}
