package nginxconf_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/sticky"
)

func TestPrintParseIsTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		text := nginxconf.Format(c)
		p, err := nginxconf.Parse(text, nil)
		require.NoError(t, err, "%s", text)
		require.Len(t, p.Blocks, 1)
		got := p.Blocks[0].Config
		got.Warnings = nil
		require.Equal(t, c, got, "%s", text)
		require.Equal(t, text, p.Blocks[0].String())
	})
}

// drawConfig draws a configuration that nginx has words for, in the form in
// which it is read.
func drawConfig(t *rapid.T) balancer.Config {
	c := balancer.Config{
		Name:      rapid.OneOf(rapid.StringMatching(`[a-z][a-z0-9_.-]{0,10}`), drawWord()).Draw(t, "name"),
		Method:    drawMethod().Draw(t, "method"),
		Keepalive: rapid.IntRange(-1, 100).Draw(t, "keepalive"),
		KeepaliveTimeout: rapid.SampledFrom([]time.Duration{0, balancer.NoKeepalive, time.Millisecond, 1500 * time.Millisecond,
			time.Minute, 1000 * time.Hour}).Draw(t, "keepalive_timeout"),
		Servers: rapid.SliceOfN(rapid.Custom(drawServer), 1, 6).Draw(t, "servers"),
	}
	c.Servers[0].Backup = false
	stream := isStream(c.Method)
	if stream {
		c.Keepalive, c.KeepaliveTimeout = 0, 0
		for i := range c.Servers {
			s := &c.Servers[i]
			s.Drain, s.Route = false, ""
			s.Name = s.Addr // with a port
		}
	} else {
		c.Sticky = drawSticky().Draw(t, "sticky")
	}
	if strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == "" && c.Name != "" {
		c.Retry = drawRetry(t, stream)
	}
	return c
}

func isStream(m peer.Method) bool {
	lt, ok := m.(leasttime.Method)
	return ok && (lt.Mode == leasttime.Connect || lt.Mode == leasttime.FirstByte)
}

// drawWord draws words with all that quoting has to do with.
func drawWord() *rapid.Generator[string] {
	return rapid.StringOf(rapid.SampledFrom([]rune("ab \t\n\r;{}\"'\\#ntr)ü.\x00")))
}

func drawMethod() *rapid.Generator[peer.Method] {
	key := rapid.Map(drawWord(), func(s string) string { return s + "$arg_x" })
	return rapid.OneOf(
		rapid.Just[peer.Method](nil),
		rapid.Just[peer.Method](leastconn.New()),
		rapid.Just[peer.Method](iphash.New()),
		rapid.Custom(func(t *rapid.T) peer.Method {
			return hash.Method{Key: key.Draw(t, "key"), Consistent: rapid.Bool().Draw(t, "consistent")}
		}),
		rapid.Custom(func(t *rapid.T) peer.Method { return random.Method{Two: rapid.Bool().Draw(t, "two")} }),
		rapid.Custom(func(t *rapid.T) peer.Method {
			return leasttime.Method{Mode: rapid.SampledFrom([]leasttime.Mode{leasttime.Header, leasttime.LastByte,
				leasttime.Connect, leasttime.FirstByte}).Draw(t, "mode"), Inflight: rapid.Bool().Draw(t, "inflight")}
		}),
	)
}

func drawServer(t *rapid.T) balancer.Server {
	addr := rapid.SampledFrom([][2]string{
		{"10.0.0.1:8080", "10.0.0.1:8080"}, {"10.0.0.1", "10.0.0.1:80"}, {"010.0.0.1:080", "10.0.0.1:80"},
		{"app.example", "app.example:80"}, {"app.example:81", "app.example:81"}, {"10.1", "10.0.0.1:80"},
		{"[2001:DB8::1]:81", "[2001:db8::1]:81"}, {"unix:/run/a b.sock", "unix:/run/a b.sock"},
	}).Draw(t, "addr")
	s := balancer.Server{
		Name: addr[0], Addr: addr[1],
		Weight:   rapid.SampledFrom([]int{0, 1, 5, 1 << 28}).Draw(t, "weight"),
		MaxConns: rapid.IntRange(0, 3).Draw(t, "max_conns"),
		MaxFails: rapid.IntRange(-1, 3).Draw(t, "max_fails"),
		FailTimeout: rapid.SampledFrom([]time.Duration{0, balancer.NoFailTimeout, time.Second, 90 * time.Second,
			1<<63 - 1}).Draw(t, "fail_timeout"),
		Backup: rapid.Bool().Draw(t, "backup"),
		Route:  rapid.SampledFrom([]string{"", "r1", "a b", "ü"}).Draw(t, "route"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "down") {
	case 1:
		s.Down = true
	case 2:
		s.Drain = true
	}
	return s
}

func drawSticky() *rapid.Generator[sticky.Sticky] {
	text := rapid.SampledFrom([]string{"", "/", ".example.com", "a b", "$arg_x", "x;y"})
	return rapid.OneOf(
		rapid.Just[sticky.Sticky](nil),
		rapid.Custom(func(t *rapid.T) sticky.Sticky {
			return sticky.Cookie{
				Name: "a" + drawWord().Draw(t, "name"),
				Expires: rapid.SampledFrom([]time.Duration{0, sticky.MaxExpires, sticky.ExpiresAtOnce, time.Hour}).
					Draw(t, "expires"),
				Domain: text.Draw(t, "domain"), Path: text.Draw(t, "path"),
				SameSite: rapid.SampledFrom([]string{"", "Lax", "strict", "$arg_s"}).Draw(t, "samesite"),
				HTTPOnly: rapid.Bool().Draw(t, "httponly"), Secure: rapid.Bool().Draw(t, "secure"),
			}
		}),
		rapid.Just[sticky.Sticky](sticky.Route{Variables: []string{"$cookie_route", "$arg_route"}}),
		rapid.Custom(func(t *rapid.T) sticky.Sticky {
			return sticky.Learn{Create: []string{"$upstream_cookie_s"}, Lookup: []string{"$cookie_s", "$arg_s"},
				Zone: "s", ZoneSize: 1 << 20, Header: rapid.Bool().Draw(t, "header"),
				Timeout: rapid.SampledFrom([]time.Duration{0, time.Hour, 1500 * time.Millisecond}).Draw(t, "timeout")}
		}),
	)
}

func drawRetry(t *rapid.T, stream bool) balancer.Retry {
	duration := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 1500 * time.Millisecond, time.Minute})
	r := balancer.Retry{Tries: rapid.IntRange(0, 3).Draw(t, "tries"), Timeout: duration.Draw(t, "timeout"),
		ConnectTimeout: duration.Draw(t, "connect"), ReadTimeout: duration.Draw(t, "read")}
	if stream {
		r.SendTimeout = r.ReadTimeout
		if r.Off = rapid.Bool().Draw(t, "off"); !r.Off {
			r.On = rapid.SampledFrom([]balancer.Kind{0, balancer.KindError | balancer.KindTimeout}).Draw(t, "on")
		}
		return r
	}
	r.SendTimeout = duration.Draw(t, "send")
	if r.Off = rapid.Bool().Draw(t, "off"); !r.Off {
		r.On = balancer.Kind(rapid.IntRange(0, int(balancer.KindHTTP404<<1-1)).Draw(t, "on"))
		r.NonIdempotent = r.On != 0 && rapid.Bool().Draw(t, "non_idempotent")
	}
	return r
}

func TestWhatNginxHasNoWordsForBecomesAComment(t *testing.T) {
	text := nginxconf.Format(balancer.Config{
		Name: "u",
		Servers: []balancer.Server{
			{Addr: "10.1.0.1:8080", Name: "app.example:8080", FailTimeout: 1500 * time.Millisecond},
			{Addr: "10.1.0.2:8080", Name: "app.example:8080", Backup: true},
		},
		Method:           hash.Method{Key: "$host", MaxPoints: 7},
		Retry:            balancer.Retry{Counts: balancer.KindError, BufferBody: 9},
		KeepaliveTimeout: 1500 * time.Microsecond,
		OnlyUpstream:     true,
		Clock:            func() time.Duration { return 0 },
	})
	for _, want := range []string{
		"# OnlyUpstream is trunk's own: true\n", "# Clock is trunk's own: set\n",
		"# KeepaliveTimeout=1.5ms is finer than nginx's millisecond\n    keepalive_timeout 1ms;\n", "# of the name app.example:8080\n", "# fail_timeout=1.5s is finer than nginx's second\n",
		"# the method's MaxPoints is trunk's own: 7\n", "# Retry.Counts is trunk's own: error\n",
	} {
		assert.Contains(t, text, want)
	}
	b := parseOne(t, text, nil)
	assert.Equal(t, hash.New("$host"), b.Config.Method)
	assert.True(t, b.Config.Servers[1].Backup, "the method's line is below the backup")
	assert.Less(t, strings.Index(text, "backup"), strings.Index(text, "hash $host"))
}

func TestNamesThatAreResolvedAtRunTimePrintWithWhatNginxNeeds(t *testing.T) {
	c := balancer.Config{Name: "u", Servers: []balancer.Server{{Name: "app.example", Addr: "app.example:80", Resolve: true, Service: "http"}}}
	b := parseOne(t, nginxconf.Format(c), &nginxconf.ParseOptions{Lookup: func(string) ([]netip.Addr, error) { return nil, nil }})
	assert.Equal(t, c, b.Config)
}
