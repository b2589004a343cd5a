//go:build unix

package nginx

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

var _ = template.Must(configuration.New("http").Parse(`{{template "main" .}}
http {
    access_log off;
    client_body_temp_path {{.Dir}}/client_body;
    proxy_temp_path {{.Dir}}/proxy;
    fastcgi_temp_path {{.Dir}}/fastcgi;
    uwsgi_temp_path {{.Dir}}/uwsgi;
    scgi_temp_path {{.Dir}}/scgi;
    {{template "upstream" .}}
    server {
        listen unix:{{.Dir}}/nginx.sock;
        set_real_ip_from unix:;
        real_ip_header X-Real-IP;
        location / {
            proxy_pass http://backend;
            proxy_buffering off;
            {{.Rules}}
            add_header X-Asked $upstream_addr always;
            add_header X-Answered $upstream_status always;
        }
    }
}
`))

func TestTheSameBackendsOverHTTP(t *testing.T) {
	for _, g := range common {
		t.Run(g.name, func(t *testing.T) { overHTTP(t, g, nil).judge(t, requests, g.hold) })
	}
	tests := []struct {
		given
		change func(i int, r *http.Request) // what is special about request i
	}{
		{given{name: "statuses that are passed on", backends: "a b c", rules: "proxy_next_upstream error http_503 http_404;",
			block: "server a weight=10 max_fails=20 fail_timeout=1h; server b weight=5 max_fails=40 fail_timeout=1h; server c fail_timeout=1h;"},
			func(i int, r *http.Request) {
				switch {
				case i%7 == 3:
					r.Header.Set(headerFail, "a 503")
				case i%5 == 1:
					r.Header.Set(headerFail, "b 404")
				case i%11 == 4:
					r.Header.Set(headerFail, "c 500") // not passed on
				}
			}},
		{given{name: "connections that break", backends: "a b c",
			block: "server a weight=10 max_fails=30 fail_timeout=1h; server b weight=5 max_fails=0; server c weight=2 max_fails=9 fail_timeout=1h;"},
			func(i int, r *http.Request) {
				r.Header.Set(headerFail, string("abc"[i%3])+" close")
				if i%4 == 0 {
					r.Method = http.MethodPost // is sent, and so not sent again
				}
			}},
		{given{name: "ip_hash", backends: "a b c", block: "ip_hash; server a; server b; server c;"}, nil},
		{given{name: "ip_hash, weights and a dead peer", backends: "a -b c d",
			block: "ip_hash; server a weight=3; server b weight=2 fail_timeout=1h; server c; server d down;"}, nil},
		{given{name: "hash", backends: "a b c", block: "hash $arg_user; server a; server b; server c;"}, users},
		{given{name: "hash, weights and a dead peer", backends: "a -b c d",
			block: "hash $arg_user$request_method; server a weight=3; server b weight=2 max_fails=2 fail_timeout=1h; server c; server d down;"}, users},
		{given{name: "hash consistent", backends: "a b c d", block: "hash $request_uri consistent; server a; server b; server c; server d;"}, users},
		{given{name: "hash consistent, weights and a dead peer", backends: "a -b c d",
			block: "hash $arg_user consistent; server a weight=3; server b weight=4 max_fails=2 fail_timeout=1h; server c; server d down;"}, users},
		{given{name: "hash without a key", backends: "a b c", block: "hash $arg_nothing; server a weight=2; server b; server c;"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { overHTTP(t, test.given, test.change).judge(t, requests, test.hold) })
	}
}

// users gives each request a user, some of whom come again and again.
func users(i int, r *http.Request) { r.URL.RawQuery = fmt.Sprintf("page=%d&user=u%d", i%3, i*i%97) }

func overHTTP(t *testing.T, g given, change func(int, *http.Request)) *sides {
	gates := &gates{}
	b := startBackends(t, g.backends, func(name string, l net.Listener) { http.Serve(l, gates.handler(name)) })
	dir := tempDir(t)
	text := configure(t, "http", settings{Dir: dir, Block: b.lines(g.block), Rules: g.rules})
	dial := start(t, dir, text)
	transport := &http.Transport{MaxIdleConnsPerHost: 100,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	t.Cleanup(transport.CloseIdleConnections)
	nginx := requester{t, b, gates, g.hold, change, transport, func(resp *http.Response, _ *balancer.AttemptLog) string {
		return resp.Header.Get("X-Asked") + ": " + resp.Header.Get("X-Answered")
	}}
	trunk := requester{t, b, gates, g.hold, change, upstream(t, text).RoundTripper(nil), func(_ *http.Response, log *balancer.AttemptLog) string {
		return log.Addr() + ": " + log.Status()
	}}
	return &sides{b, nginx.send, trunk.send}
}

// requester sends the requests of one side.
type requester struct {
	t        *testing.T
	backends *backends
	gates    *gates
	hold     bool
	change   func(int, *http.Request)
	rt       http.RoundTripper
	asked    func(*http.Response, *balancer.AttemptLog) string
}

func (q *requester) send(i int) (end func() string) {
	log := &balancer.AttemptLog{}
	ctx := balancer.WithLog(balancer.WithInput(q.t.Context(), balancer.Input{Client: client(i)}), log)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://backend/page/%d", i%17), nil)
	require.NoError(q.t, err)
	req.Header.Set("X-Real-IP", client(i).String())
	if q.change != nil {
		q.change(i, req)
	}
	open := func() {}
	if q.hold {
		var id string
		id, open = q.gates.add()
		req.Header.Set(headerHold, id)
	}
	resp, err := q.rt.RoundTrip(req)
	if err != nil {
		// nginx answers for itself where trunk returns an error.
		resp = &http.Response{StatusCode: balancer.StatusCode(err), Body: http.NoBody}
	}
	return func() string {
		open()
		// At the end of the answer the peer is free again.
		_, err := io.Copy(io.Discard, resp.Body)
		require.NoError(q.t, err)
		require.NoError(q.t, resp.Body.Close())
		return q.backends.names(fmt.Sprintf("%s (%d)", q.asked(resp, log), resp.StatusCode))
	}
}

// Headers by which a request says what a backend is to do with it, so that both
// sides meet the same backends.
const (
	// headerFail is "b 503" or "b close": what the backend of that name does.
	headerFail = "X-Fail"
	// headerHold makes the backend send its header, and wait with the body for
	// the gate of that name.
	headerHold = "X-Hold"
)

// gates hold the bodies of answers back until they are opened.
type gates struct {
	mu   sync.Mutex
	shut []chan struct{}
}

func (g *gates) add() (id string, open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := make(chan struct{})
	g.shut = append(g.shut, gate)
	return strconv.Itoa(len(g.shut) - 1), func() { close(gate) }
}

func (g *gates) get(id string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, _ := strconv.Atoi(id)
	return g.shut[i]
}

// handler is the backend of that name.
func (g *gates) handler(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if who, what, _ := strings.Cut(r.Header.Get(headerFail), " "); who == name {
			if what == "close" {
				panic(http.ErrAbortHandler)
			}
			status, _ := strconv.Atoi(what)
			w.WriteHeader(status)
			return
		}
		if id := r.Header.Get(headerHold); id != "" {
			w.WriteHeader(http.StatusOK)
			http.NewResponseController(w).Flush()
			select {
			case <-g.get(id):
			case <-r.Context().Done(): // a test that failed opens no gates
			}
		}
		io.WriteString(w, name)
	}
}
