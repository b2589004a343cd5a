package balancer_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/balancertest"
	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/roundrobin"
	"github.com/trunklb/trunk/sticky"
)

// wrapped is a wrapper of a user's own, that changes nothing.
type wrapped struct{ peer.Method }

// guises are one method in all the ways in which it may come.
func guises(m peer.Method) map[string]peer.Method {
	pointer := reflect.New(reflect.TypeOf(m))
	pointer.Elem().Set(reflect.ValueOf(m))
	return map[string]peer.Method{
		"as it is":         m,
		"a pointer":        pointer.Interface().(peer.Method),
		"beneath sticky":   sticky.Over(m),
		"in a wrapper":     wrapped{m},
		"in two, pointers": &wrapped{&wrapped{m}},
	}
}

var shipped = []peer.Method{
	roundrobin.New(), leastconn.New(), iphash.New(), iphash.Method{WholeRange: true}, random.New(), random.NewTwo(),
	hash.New("$request_uri"), hash.New("constant"), hash.NewConsistent("$arg_user"), hash.Method{Key: "$uri", WholeRange: true},
	leasttime.New(leasttime.Header), leasttime.Method{Mode: leasttime.Connect, Inflight: true, TrueTies: true},
}

// However a method comes, all that is done for it and said of it is the same.
func TestAMethodInAnyGuise(t *testing.T) {
	for _, m := range shipped {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			weight := 40000 // beyond what the hashes honour
			if slices.Contains(m.Describe().Directive, "consistent") {
				weight = 4
			}
			config := func(m peer.Method) balancer.Config {
				return balancer.Config{Name: "u", Method: m, Servers: []balancer.Server{
					{Addr: "10.0.0.1:80", Weight: weight}, {Addr: "10.0.0.2:80", Weight: 3}, {Addr: "10.0.0.3:80", Backup: true}}}
			}
			for name, guise := range guises(m) {
				require.Equal(t, nginxconf.Format(config(m)), nginxconf.Format(config(guise)), name)
				require.Equal(t, balancer.Lint(config(m)), balancer.Lint(config(guise)), name)
				want, got := balancertest.NewConfig(t, config(m)), balancertest.NewConfig(t, config(guise))
				for range 50 {
					require.Equal(t, want.Pick(), got.Pick(), name)
				}
				require.Equal(t, want.Decision().String(), got.Decision().String(), name)
				require.Equal(t, want.Upstream().Warnings(), got.Upstream().Warnings(), name)
			}
		})
	}
}

// A client's address reaches ip_hash in any guise: fifty clients are spread, and a request
// without an address is refused.
func TestIPHashInAnyGuise(t *testing.T) {
	for name, m := range guises(iphash.New()) {
		f := newFixture(t, balancer.Config{Method: m}, "a:200;b:200;c:200")
		for i := range 50 {
			r, _ := f.request(context.Background(), http.MethodGet, "")
			r.RemoteAddr = fmt.Sprintf("10.%d.%d.1:1234", i*37%256, i*11%256)
			require.Contains(t, f.send(r), "200")
		}
		for _, p := range f.up.Snapshot().Peers {
			require.Greater(t, p.Gets, uint64(10), "%s: %s", name, p.Server.Addr)
		}
		r, _ := f.request(context.Background(), http.MethodGet, "")
		_, err := f.rt.RoundTrip(r)
		require.ErrorContains(t, err, "ip_hash needs Input.Client", name)
	}
}

// What a method does not fit is refused in any guise.
func TestUnfitInAnyGuise(t *testing.T) {
	var unfit *balancer.MethodError
	for name, m := range guises(leasttime.New(leasttime.Connect)) {
		f := newFixture(t, balancer.Config{Method: m}, "a:200;b:200")
		r, _ := f.request(context.Background(), http.MethodGet, "")
		_, err := f.rt.RoundTrip(r)
		require.ErrorAs(t, err, &unfit, name)
		require.Equal(t, "least_time connect", unfit.Method)
	}
	for _, m := range []peer.Method{leasttime.New(leasttime.Header), iphash.New()} {
		for name, guise := range guises(m) {
			up := newUpstream(t, balancer.Config{Method: guise, Servers: servers("a b")})
			_, err := up.DialContext(context.Background(), "tcp", "backend:80")
			require.ErrorAs(t, err, &unfit, name)
		}
	}
}

// needy is a method of a user's own that needs the client's address.
type needy struct{ roundrobin.Method }

func (needy) Describe() peer.Description {
	return peer.Description{Name: "by country", Client: true, NotStream: "use it for HTTP",
		Lint: func(_ []peer.Server, warn func(code, word, message, hint string)) {
			warn("no-country", "country", "some are nowhere", "move them")
		}}
}

// A method of a user's own is called by its name wherever one speaks of it.
func TestAForeignMethodSpeaks(t *testing.T) {
	for name, m := range guises(needy{}) {
		up := newUpstream(t, balancer.Config{Method: m, Servers: servers("a b")})
		try := up.Start(context.Background(), balancer.Input{})
		require.False(t, try.Next(), name)
		require.ErrorContains(t, try.Err(), "by country needs Input.Client", name)
		_, err := up.DialContext(context.Background(), "tcp", "backend:80")
		require.ErrorContains(t, err, "DialContext does not go with by country: use it for HTTP", name)
		require.Equal(t, "by country", up.Snapshot().Method)
		require.Contains(t, nginxconf.Format(balancer.Config{Name: "u", Method: m, Servers: servers("a b")}), "# nginx does not have the method: by country")
		require.Equal(t, balancer.Code("no-country"), up.Warnings()[0].Code)
	}
}

// A nil pointer is refused by name.
func TestNilPointers(t *testing.T) {
	var m *iphash.Method
	var c *sticky.Cookie
	for field, config := range map[string]balancer.Config{
		"Method": {Method: m, Servers: servers("a b")}, "Sticky": {Sticky: c, Servers: servers("a b")},
	} {
		balancer.Lint(config)
		config.Resolver = balancer.NoLookup
		_, err := balancer.New(context.Background(), config)
		var e *balancer.ConfigError
		require.ErrorAs(t, err, &e)
		require.Equal(t, field, e.Field)
	}
}
