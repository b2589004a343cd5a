//go:build unix

package nginx

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

const requests = 500

// Every fail_timeout here is an hour: the two sides do not see the same second,
// and are not to be told apart by that.
func TestTheSameBackendsAsNginx(t *testing.T) {
	tests := []struct {
		name     string
		backends string // "-" before one that is dead
		block    string
		location string
		change   func(i int, r *http.Request) // what is special about request i
		hold     bool
	}{
		{name: "equal weights", backends: "a b c", block: "server a; server b; server c;"},
		{name: "5, 1, 1", backends: "a b c", block: "server a weight=5; server b; server c;"},
		{name: "3, 2, 1", backends: "a b c", block: "server a weight=3; server b weight=2; server c;"},
		{name: "one", backends: "a", block: "server a weight=7;"},
		{name: "down", backends: "a b c", block: "server a weight=3; server b weight=2 down; server c;"},
		{name: "a dead peer", backends: "a -b c", block: "server a weight=2 fail_timeout=1h; server b weight=3 fail_timeout=1h; server c fail_timeout=1h;"},
		{name: "a dead peer that may fail thrice", backends: "-a b c",
			block: "server a weight=10 max_fails=3 fail_timeout=1h; server b weight=3; server c;"},
		{name: "a dead peer that is never taken out", backends: "a -b c", block: "server a; server b weight=2 max_fails=0; server c;"},
		{name: "a backup", backends: "-a -b c d",
			block: "server a fail_timeout=1h; server b weight=2 fail_timeout=1h; server c backup; server d weight=2 backup;"},
		{name: "a backup now and then", backends: "-a -b c d",
			block: "server a max_fails=0; server b weight=20 max_fails=7 fail_timeout=1h; server c weight=3 backup; server d backup;"},
		{name: "all are dead", backends: "-a -b -c", block: "server a fail_timeout=1h; server b max_fails=2 fail_timeout=1h; server c max_fails=0;"},
		{name: "statuses that are passed on", backends: "a b c", location: "proxy_next_upstream error http_503 http_404;",
			block: "server a weight=10 max_fails=20 fail_timeout=1h; server b weight=5 max_fails=40 fail_timeout=1h; server c fail_timeout=1h;",
			change: func(i int, r *http.Request) {
				switch {
				case i%7 == 3:
					r.Header.Set(headerFail, "a 503")
				case i%5 == 1:
					r.Header.Set(headerFail, "b 404")
				case i%11 == 4:
					r.Header.Set(headerFail, "c 500") // not passed on
				}
			}},
		{name: "connections that break", backends: "a b c",
			block: "server a weight=10 max_fails=30 fail_timeout=1h; server b weight=5 max_fails=0; server c weight=2 max_fails=9 fail_timeout=1h;",
			change: func(i int, r *http.Request) {
				r.Header.Set(headerFail, string("abc"[i%3])+" close")
				if i%4 == 0 {
					r.Method = http.MethodPost // is sent, and so not sent again
				}
			}},
		{name: "two tries", backends: "-a -b c", location: "proxy_next_upstream_tries 2;",
			block: "server a max_fails=0; server b weight=2 max_fails=0; server c weight=2;"},
		{name: "least_conn", backends: "a b c", block: "least_conn; server a; server b; server c;", hold: true},
		{name: "least_conn, weights", backends: "a b c", block: "least_conn; server a weight=5; server b weight=2; server c;", hold: true},
		{name: "least_conn, a dead peer", backends: "a -b c d",
			block: "least_conn; server a weight=5; server b weight=4 max_fails=2 fail_timeout=1h; server c; server d backup;", hold: true},
		{name: "max_conns", backends: "a b c", block: "server a weight=5 max_conns=2; server b max_conns=1; server c backup;", hold: true},
		{name: "ip_hash", backends: "a b c", block: "ip_hash; server a; server b; server c;", change: clients},
		{name: "ip_hash, weights and a dead peer", backends: "a -b c d",
			block: "ip_hash; server a weight=3; server b weight=2 fail_timeout=1h; server c; server d down;", change: clients},
		{name: "hash", backends: "a b c", block: "hash $arg_user; server a; server b; server c;", change: users},
		{name: "hash, weights and a dead peer", backends: "a -b c d",
			block: "hash $arg_user$request_method; server a weight=3; server b weight=2 max_fails=2 fail_timeout=1h; server c; server d down;", change: users},
		{name: "hash consistent", backends: "a b c d", block: "hash $request_uri consistent; server a; server b; server c; server d;", change: users},
		{name: "hash consistent, weights and a dead peer", backends: "a -b c d",
			block: "hash $arg_user consistent; server a weight=3; server b weight=4 max_fails=2 fail_timeout=1h; server c; server d down;", change: users},
		{name: "hash without a key", backends: "a b c", block: "hash $arg_nothing; server a weight=2; server b; server c;"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			b := startBackends(t, strings.Fields(test.backends)...)
			text := configure(t, dir, b.lines(test.block), test.location)
			send := func(side string, rt http.RoundTripper, asked func(*http.Response, *balancer.Log) string) []string {
				run := &run{t: t, backends: b, side: side, rt: rt, asked: asked, hold: test.hold, change: test.change}
				return run.all()
			}
			want := send("nginx", start(t, dir, text), func(resp *http.Response, _ *balancer.Log) string {
				return resp.Header.Get("X-Asked") + ": " + resp.Header.Get("X-Answered")
			})
			got := send("trunk", trunk(t, text), func(_ *http.Response, log *balancer.Log) string {
				return log.Addr() + ": " + log.Status()
			})
			for i := range want {
				require.Equal(t, want[i], got[i], "request %d goes otherwise through trunk than through nginx", i)
			}
			t.Log(summary(want))
		})
	}
}

// clients gives each request an address of its own.
func clients(i int, r *http.Request) {
	addr := netip.AddrFrom4([4]byte{byte(10 + i%7), byte(i * 37), byte(i * 11), byte(i)})
	if i%9 == 0 {
		addr = netip.MustParseAddr(fmt.Sprintf("2001:db8::%x:1", i))
	}
	r.Header.Set("X-Real-IP", addr.String())
}

// users gives each request a user, some of whom come again and again.
func users(i int, r *http.Request) { r.URL.RawQuery = fmt.Sprintf("page=%d&user=u%d", i%3, i*i%97) }

// trunk makes a transport of the very text that nginx has got.
func trunk(t *testing.T, text string) http.RoundTripper {
	parsed, err := balancer.ParseConfig(text, nil)
	require.NoError(t, err)
	block := parsed.Block("backend")
	require.NotNil(t, block)
	c := balancer.NginxParity(block.Config)
	// This nginx keeps no connections to peers unless it is told to; later ones do.
	c.Keepalive = balancer.NoKeepalive
	up, err := balancer.New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { up.Close() })
	return up.RoundTripper(nil)
}

// run is the requests of one side.
type run struct {
	t        *testing.T
	backends *backends
	side     string
	rt       http.RoundTripper
	asked    func(*http.Response, *balancer.Log) string
	hold     bool
	change   func(int, *http.Request)
	open     []func() // what releases the request that was sent so long ago
}

// all sends the requests one after the other, and returns for each who was asked
// and what came of it: "a, b: 502, 200 (200)".
func (r *run) all() []string {
	var out []string
	for i := range requests {
		out = append(out, r.one(i))
		// How long a request is held differs, but by its number only: so the
		// peers' loads are in no simple order.
		for len(r.open) > 1+i*7%13 {
			r.open[0]()
			r.open = r.open[1:]
		}
	}
	for _, release := range r.open {
		release()
	}
	return out
}

func (r *run) one(i int) string {
	log := &balancer.Log{}
	ctx := balancer.WithLog(r.t.Context(), log)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://backend/page/%d", i%17), nil)
	require.NoError(r.t, err)
	if r.change != nil {
		r.change(i, req)
	}
	if client := req.Header.Get("X-Real-IP"); client != "" {
		req = req.WithContext(balancer.WithInput(ctx, balancer.Input{Client: netip.MustParseAddr(client)}))
	}
	id := fmt.Sprint(r.side, i)
	if r.hold {
		req.Header.Set(headerHold, id)
	}
	resp, err := r.rt.RoundTrip(req)
	if err != nil {
		// nginx answers for itself where trunk returns an error.
		return r.backends.names(fmt.Sprintf("%s (%d)", r.asked(&http.Response{}, log), balancer.StatusCode(err)))
	}
	if r.hold && resp.StatusCode == http.StatusOK {
		r.open = append(r.open, func() { close(r.backends.gate(id)); r.read(resp) })
	} else {
		r.read(resp)
	}
	return r.backends.names(fmt.Sprintf("%s (%d)", r.asked(resp, log), resp.StatusCode))
}

// read reads an answer to its end, at which the peer is free again.
func (r *run) read(resp *http.Response) {
	_, err := io.Copy(io.Discard, resp.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
}

// summary counts what came of the requests.
func summary(all []string) string {
	counts := map[string]int{}
	for _, what := range all {
		counts[what]++
	}
	var out []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%4d times %s", counts[what], what))
	}
	return strings.Join(out, "\n")
}
