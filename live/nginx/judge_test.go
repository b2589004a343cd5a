//go:build unix

package nginx

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
)

// requests is how many requests, or connections, each side sends.
const requests = 500

// given is what both sides are given.
type given struct {
	name     string
	backends string // "-" before one that is dead
	block    string
	rules    string // stand beside proxy_pass
	hold     bool   // requests stay open for a while
}

// common are judged over HTTP and over TCP. Every fail_timeout here is an hour: the
// two sides do not see the same second, and are not to be told apart by that. random
// is not here: nginx's draws are its own.
var common = []given{
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
	{name: "two tries", backends: "-a -b c", rules: "proxy_next_upstream_tries 2;",
		block: "server a max_fails=0; server b weight=2 max_fails=0; server c weight=2;"},
	{name: "no next upstream", backends: "a -b -c", rules: "proxy_next_upstream off;",
		block: "server a; server b max_fails=20 fail_timeout=1h; server c weight=2 max_fails=0;"},
	{name: "least_conn", backends: "a b c", block: "least_conn; server a; server b; server c;", hold: true},
	{name: "least_conn, weights", backends: "a b c", block: "least_conn; server a weight=5; server b weight=2; server c;", hold: true},
	{name: "least_conn, a dead peer", backends: "a -b c d",
		block: "least_conn; server a weight=5; server b weight=4 max_fails=2 fail_timeout=1h; server c; server d backup;", hold: true},
	{name: "max_conns", backends: "a b c", block: "server a weight=5 max_conns=2; server b max_conns=1; server c backup;", hold: true},
	{name: "hash of the client", backends: "a b c", block: "hash $remote_addr; server a; server b; server c;"},
	{name: "hash of the client, weights and a dead peer", backends: "a -b c d",
		block: "hash $remote_addr; server a weight=3; server b weight=2 max_fails=2 fail_timeout=1h; server c; server d down;"},
	{name: "hash of the client, consistent", backends: "a b c d",
		block: "hash $remote_addr consistent; server a; server b; server c; server d;"},
	{name: "hash of the client, consistent, weights and a dead peer", backends: "a -b c d",
		block: "hash $remote_addr consistent; server a weight=3; server b weight=4 max_fails=2 fail_timeout=1h; server c; server d down;"},
}

// client is the address from which request i comes.
func client(i int) netip.Addr {
	if i%9 == 0 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8::%x:1", i))
	}
	return netip.AddrFrom4([4]byte{byte(10 + i%7), byte(i * 37), byte(i * 11), byte(i)})
}

// upstream is trunk, made of the very text that nginx has got.
func upstream(t *testing.T, text string) *balancer.Upstream {
	parsed, err := nginxconf.Parse(text, nil)
	require.NoError(t, err)
	block := parsed.Block("backend")
	require.NotNil(t, block)
	c := balancer.NginxParity(block.Config)
	// This nginx keeps no connections to peers unless it is told to; later ones do.
	c.Keepalive = balancer.NoKeepalive
	up, err := balancer.New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { up.Close() })
	return up
}

// A side sends request i. end ends it, if it has not ended yet, and says who was
// asked and what came of it: "a, b: 502, 200 (200)".
type side func(i int) (end func() string)

// sides are the two that are compared, with the backends that both ask.
type sides struct {
	*backends
	nginx, trunk side
}

// judge lets each side send its requests, and compares what came of them.
func (s *sides) judge(t *testing.T, requests int, hold bool) {
	want, got := s.nginx.play(requests, hold), s.trunk.play(requests, hold)
	for i := range want {
		require.Equal(t, want[i], got[i], "request %d goes otherwise through trunk than through nginx", i)
	}
	t.Log(summary(want))
}

// play sends the requests one after the other.
func (send side) play(requests int, hold bool) []string {
	out := make([]string, requests)
	var open []func() // what ends the requests that are held, the oldest first
	for i := range requests {
		end := send(i)
		open = append(open, func() { out[i] = end() })
		keep := 0
		if hold {
			// How long a request is held differs, but by its number only: so the
			// peers' loads are in no simple order.
			keep = 1 + i*7%13
		}
		for len(open) > keep {
			open[0]()
			open = open[1:]
		}
	}
	for _, end := range open {
		end()
	}
	return out
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
