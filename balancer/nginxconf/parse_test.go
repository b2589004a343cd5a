package nginxconf_test

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/sticky"
)

// parseOne reads a text with one block.
func parseOne(t *testing.T, text string, opts *nginxconf.ParseOptions) nginxconf.Block {
	t.Helper()
	p, err := nginxconf.Parse(text, opts)
	require.NoError(t, err)
	require.Len(t, p.Blocks, 1)
	return p.Blocks[0]
}

// refusal reads a text that is refused.
func refusal(t *testing.T, text string, opts *nginxconf.ParseOptions) *nginxconf.ParseError {
	t.Helper()
	_, err := nginxconf.Parse(text, opts)
	var e *nginxconf.ParseError
	require.ErrorAs(t, err, &e)
	return e
}

func TestABlockBecomesAConfig(t *testing.T) {
	b := parseOne(t, `
upstream backend {
    least_conn;
    server 10.0.0.1:8080 weight=5;
    server app.example max_fails=3 fail_timeout=1m30s max_conns=100;
    server unix:/run/app.sock down max_fails=0 fail_timeout=0;
    server [2001:DB8::1]:81 backup route=b;
    sticky cookie srv expires=1h path=/;
    keepalive 16;
}`, nil)
	assert.Equal(t, []balancer.Code{balancer.CodeMaxFailsAboveWeight}, codes(b.Config.Warnings), "what is warned of travels along")
	b.Config.Warnings = nil
	assert.Equal(t, balancer.Config{
		Name:      "backend",
		Method:    leastconn.New(),
		Sticky:    sticky.Cookie{Name: "srv", Expires: time.Hour, Path: "/"},
		Keepalive: 16,
		Servers: []balancer.Server{
			{Addr: "10.0.0.1:8080", Name: "10.0.0.1:8080", Weight: 5},
			{Addr: "app.example:80", Name: "app.example", MaxFails: 3, FailTimeout: 90 * time.Second, MaxConns: 100},
			{Addr: "unix:/run/app.sock", Name: "unix:/run/app.sock", Down: true,
				MaxFails: balancer.NoMaxFails, FailTimeout: balancer.NoFailTimeout},
			{Addr: "[2001:db8::1]:81", Name: "[2001:DB8::1]:81", Backup: true, Route: "b"},
		},
	}, b.Config)
	assert.Equal(t, 2, b.Line)
}

// keepalive_timeout is how long net/http keeps an idle connection; what it does not know
// is passed over, which is told.
func TestKeepaliveDirectives(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"":                         0,
		"keepalive_timeout 75;":    75 * time.Second,
		"keepalive_timeout 1m30s;": 90 * time.Second,
		"keepalive_timeout 250ms;": 250 * time.Millisecond,
		"keepalive_timeout 0;":     balancer.NoKeepalive,
		"keepalive_timeout 0s;":    balancer.NoKeepalive,
	} {
		b := parseOne(t, "upstream u { "+text+" server a; }", nil)
		assert.Equal(t, want, b.Config.KeepaliveTimeout, text)
		assert.Empty(t, b.Ignored, text)
	}
	for text, want := range map[string]string{
		"keepalive_requests 100": "net/http does not count the requests of a connection",
		"keepalive_time 1h":      "net/http does not limit the age of a connection",
	} {
		b := parseOne(t, "upstream u { "+text+"; server a; }", nil)
		require.Len(t, b.Ignored, 1, text)
		assert.Equal(t, nginxconf.ClassNginx, b.Ignored[0].Class)
		assert.Contains(t, b.Ignored[0].Instead, want)
		assert.Zero(t, b.Config.KeepaliveTimeout)
	}
	for _, text := range []string{"keepalive_timeout -1;", "keepalive_timeout 1y;", "keepalive_timeout 5 6;", "keepalive_timeout 5; keepalive_timeout 5;"} {
		refusal(t, "upstream u { "+text+" server a; }", nil)
	}
}

func TestTheFirstMistakeInTheTextCounts(t *testing.T) {
	for _, c := range []struct {
		name, text, message string
		line                int
	}{
		{"a value before a brace", "upstream u {\n server a weight=0;\n server b;\n", `invalid parameter "weight=0"`, 2},
		{"a brace before a value", "upstream u {\n server a;;\n server b weight=0;\n}", `unexpected ";"`, 2},
		{"the block's end before the next block", "upstream u {\n}\nupstream v {\n server a weight=0;\n}", "no servers are inside upstream", 2},
		{"the text before the section's end", "upstream u {\n server a backup;\n}\nupstream v {\n server a weight=0;\n}", `invalid parameter "weight=0"`, 5},
		{"the section's end", "upstream u {\n server a backup;\n}\n", `no servers in upstream "u"`, 1},
		{"backup below the method", "upstream u {\n server b;\n ip_hash;\n server a backup;\n}", `balancing method does not support parameter "backup"`, 4},
		{"the directive's end is the line", "upstream u {\n server a\n weight=0\n ;\n}", `invalid parameter "weight=0"`, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := refusal(t, c.text, nil)
			assert.Equal(t, c.message, e.Message)
			assert.Equal(t, c.line, e.Line)
		})
	}
	parseOne(t, "upstream u { server b; server a backup; ip_hash; }", nil)
}

func TestWholeConfigurations(t *testing.T) {
	p, err := nginxconf.Parse(`
user www;
events { worker_connections 64; }
http {
    log_format main '$remote_addr "$request" {'
                    '$status }';
    upstream a { server 10.0.0.1; }
    map $http_upgrade $connection_upgrade { default upgrade; '' close; "~*a{2}" x; }
    types { text/html html; }
    upstream b { hash $tenant; server 10.0.0.2; server 10.0.0.3; }
    server {
        listen 80;
        set $tenant $host;
        location ~ "^/x{2}$" { if ($args ~ "a{2}") { return 403; } proxy_pass http://a; }
    }
}
stream {
    upstream c { least_time connect inflight; server 10.0.0.4:53; server 10.0.0.5:53 backup; }
    server { listen 53 udp; proxy_pass c; }
}`, nil)
	require.NoError(t, err)
	require.Len(t, p.Blocks, 3)
	assert.False(t, p.Block("A").Stream, "names compare without case")
	assert.Equal(t, hash.New("$tenant"), p.Block("b").Config.Method)
	assert.True(t, p.Block("c").Stream)
	assert.Equal(t, leasttime.Method{Mode: leasttime.Connect, Inflight: true}, p.Block("c").Config.Method)
	assert.Nil(t, p.Block("d"))
}

func TestPlaces(t *testing.T) {
	for text, message := range map[string]string{
		"upstream u { server a; }\nhttp { }":           `"upstream" directive is not allowed here`,
		"http { server { upstream u { server a; } } }": `"upstream" directive is not allowed here`,
		"least_conn;":                         `"least_conn" directive is not allowed here`,
		"server 10.0.0.1:80;":                 `directive "server" has no opening "{"`,
		"upstream u;":                         `directive "upstream" has no opening "{"`,
		"upstream u { server { 10.0.0.1; } }": `directive "server" is not terminated by ";"`,
		"http { } http { }":                   `"http" directive is duplicate`,
		"stream { upstream u { ip_hash; server a:1; } }":                             `"ip_hash" directive is not allowed here`,
		"stream { upstream u { server a; } }":                                        `no port in upstream "a"`,
		"stream { upstream u { server a:1 drain; } }":                                `invalid parameter "drain"`,
		"http { upstream u { least_time connect; } }":                                `invalid value "connect"`,
		"http { server { root /x location / { } } }":                                 `directive "root" is not terminated by ";"`,
		"upstream u { upstream v { server a; } }":                                    `"upstream" directive is not allowed here`,
		"Upstream u { server a; }":                                                   `unknown directive "Upstream"`,
		"pool { server a; }":                                                         `unknown directive "pool"`,
		"http { map $a $b { x { } } }":                                               `unexpected "{"`,
		"server { location / { proxy_pass http://u:80; } } upstream u { server a; }": `upstream "u" may not have port 80`,
		"upstream u { server a; } server { location / { proxy_pass http://u:80; } }": `upstream "u" may not have port 80`,
		"upstream u { server a; } upstream U { server a; }":                          `duplicate upstream "U"`,
	} {
		t.Run(text, func(t *testing.T) {
			assert.Equal(t, message, refusal(t, text, nil).Message)
		})
	}
}

func TestVariablesMustBeKnown(t *testing.T) {
	assert.Equal(t, `unknown "tenant" variable`, refusal(t, "upstream u { hash $tenant; server a; }", nil).Message)
	for _, text := range []string{
		"upstream u { hash $host$arg_x${cookie_y}$1; server a; }",
		"upstream u { hash $tenant; server a; } map $host $tenant { default x; }",
		`server { location ~ "^/(?<tenant>[a-z]+)/" { } } upstream u { hash $tenant; server a; }`,
		"server { location / { set_by_lua_block $tenant { return 1 } } } upstream u { hash $tenant; server a; }",
	} {
		_, err := nginxconf.Parse(text, nil)
		assert.NoError(t, err, text)
	}
	own := map[string]func(*http.Request) string{"tenant": func(*http.Request) string { return "x" }}
	b := parseOne(t, "upstream u { hash $tenant; server a; }", &nginxconf.ParseOptions{Variables: own})
	assert.Contains(t, b.Config.Variables, "tenant")
}

func TestTwoMethods(t *testing.T) {
	b := parseOne(t, "upstream u {\n least_conn;\n ip_hash;\n server a;\n}", nil)
	assert.Equal(t, iphash.New(), b.Config.Method, "the last one counts")
	require.NotEmpty(t, b.Config.Warnings)
	assert.Equal(t, balancer.Warning{Code: nginxconf.CodeMethodRedefined, Upstream: "u", Line: 3, Word: "ip_hash",
		Message: "load balancing method redefined", Hint: "the last one counts: leave the others out"}, b.Config.Warnings[0])
}

func TestStickyAboveTheMethodIsLost(t *testing.T) {
	b := parseOne(t, "upstream u { sticky cookie srv; least_conn; server a; }", nil)
	assert.Nil(t, b.Config.Sticky)
	assert.Equal(t, sticky.Cookie{Name: "srv"}, b.StickyLost)
	assert.Contains(t, codes(b.Config.Warnings), nginxconf.CodeStickyLost)
	b = parseOne(t, "upstream u { least_conn; sticky cookie srv; server a; }", nil)
	assert.Equal(t, sticky.Cookie{Name: "srv"}, b.Config.Sticky)
}

func codes(warnings []balancer.Warning) (out []balancer.Code) {
	for _, w := range warnings {
		out = append(out, w.Code)
	}
	return out
}

func TestGreatNumbers(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("no weights are so great")
	}
	b := parseOne(t, "upstream u { server a weight=9223372036854775807; server b backup weight=9223372036854775807; }", nil)
	assert.EqualValues(t, int64(math.MaxInt64), b.Config.Servers[0].Weight)

	e := refusal(t, "upstream u {\n server a weight=9223372036854775807;\n server b;\n}", nil)
	assert.Equal(t, 3, e.Line)
	var config *balancer.ConfigError
	require.ErrorAs(t, e, &config)
	assert.Equal(t, "Weight", config.Field)

	b = parseOne(t, "upstream u { server a fail_timeout=9223372036854775807; }", nil)
	assert.Equal(t, time.Duration(math.MaxInt64), b.Config.Servers[0].FailTimeout)
	assert.Equal(t, []balancer.Code{nginxconf.CodeFailTimeout}, codes(b.Config.Warnings))
}

func TestTheThreeClasses(t *testing.T) {
	lenient := &nginxconf.ParseOptions{Lenient: true}
	choice := &nginxconf.ParseOptions{AllowChoice: true}
	all := &nginxconf.ParseOptions{Lenient: true, AllowChoice: true, Convert: true}
	for _, c := range []struct {
		line  string
		class nginxconf.Class
		opts  *nginxconf.ParseOptions // what lets it pass; nil: nothing
	}{
		{`check interval=3000 rise=2 fall=5 timeout=1000 type=http;`, nginxconf.ClassHarmless, lenient},
		{`check_http_send "HEAD / HTTP/1.0\r\n\r\n";`, nginxconf.ClassHarmless, lenient},
		{`queue 100 timeout=70;`, nginxconf.ClassHarmless, lenient},
		{`ntlm;`, nginxconf.ClassHarmless, lenient},
		{`server b slow_start=30s;`, nginxconf.ClassHarmless, lenient},
		{`fair;`, nginxconf.ClassChoice, choice},
		{`vnswrr max_init=10;`, nginxconf.ClassChoice, choice},
		{`balancer_by_lua_block { local s = "}" -- } }` + "\n" + `local t = { [[ } ]] } }`, nginxconf.ClassChoice, choice},
		{`consistent_hash $request_uri;`, nginxconf.ClassChoice, choice},
		{`session_sticky cookie=sid mode=insert;`, nginxconf.ClassChoice, choice},
		{`random two least_time=header;`, nginxconf.ClassChoice, choice},
		{`sticky name=srv hash=md5;`, nginxconf.ClassChoice, choice},
		{`upsync 127.0.0.1:8500/v1/kv/u upsync_timeout=6m;`, nginxconf.ClassServers, nil},
		{`jdomain app.example;`, nginxconf.ClassServers, nil},
		{`state /var/lib/nginx/u.conf;`, nginxconf.ClassServers, nil},
		{`include servers.conf;`, nginxconf.ClassServers, nil},
	} {
		t.Run(c.line, func(t *testing.T) {
			text := "upstream u {\n server a;\n " + c.line + "\n}"
			e := refusal(t, text, nil)
			assert.Equal(t, c.class, e.Class)
			assert.NotEmpty(t, e.Hint)
			if c.opts == nil {
				assert.Equal(t, c.class, refusal(t, text, all).Class)
				return
			}
			b := parseOne(t, text, c.opts)
			require.Len(t, b.Ignored, 1)
			assert.Equal(t, c.class, b.Ignored[0].Class)
			assert.NotEmpty(t, b.Ignored[0].Instead)
		})
	}
}

func TestConvert(t *testing.T) {
	opts := &nginxconf.ParseOptions{Convert: true}
	b := parseOne(t, "upstream u { sticky name=srv expires=1h domain=.x path=/ hash=md5 httponly; server a; }", opts)
	assert.Equal(t, sticky.Cookie{Name: "srv", Expires: time.Hour, Domain: ".x", Path: "/", HTTPOnly: true}, b.Config.Sticky)
	b = parseOne(t, "upstream u { sticky; server a; }", opts)
	assert.Equal(t, sticky.Cookie{Name: "route"}, b.Config.Sticky)
	b = parseOne(t, "upstream u { consistent_hash $request_uri; server a; }", opts)
	assert.Equal(t, hash.NewConsistent("$request_uri"), b.Config.Method)
	assert.NotEmpty(t, b.Ignored, "what differs is told")
	b = parseOne(t, "upstream u { server a slow_start=30s; server b slow_start=1m; }", opts)
	assert.Equal(t, time.Minute, b.Config.Policy.SlowStart)
}

func TestOutsideTheBlocks(t *testing.T) {
	p, err := nginxconf.Parse(`
more_set_headers "Server: x";
include /etc/nginx/mime.types;
upstream u { server 10.0.0.1; }
server { brotli on; brotli on; location / { content_by_lua_block { ngx.say("}") } } }`, nil)
	require.NoError(t, err)
	var names []string
	for _, o := range p.Ignored {
		assert.Equal(t, nginxconf.ClassOutside, o.Class)
		names = append(names, o.Words[0])
	}
	assert.Equal(t, []string{"more_set_headers", "include", "brotli", "content_by_lua_block"}, names)

	text := "upstream u { server a; } location / { proxy_pass http://u; proxy_read_timeout 5s; }"
	assert.Equal(t, `"location" directive is not allowed here`, refusal(t, text, nil).Message)
	b := parseOne(t, text, &nginxconf.ParseOptions{Lenient: true})
	assert.Equal(t, 5*time.Second, b.Config.Retry.ReadTimeout)
}

func TestIncludes(t *testing.T) {
	files := fstest.MapFS{
		"etc/nginx/conf.d/a.conf": {Data: []byte("upstream a { server 10.0.0.1; }")},
		"etc/nginx/conf.d/b.conf": {Data: []byte("upstream b {\n include servers/*.inc; }")},
		"etc/nginx/servers/1.inc": {Data: []byte("server 10.0.0.2;\n")},
		"etc/nginx/servers/2.inc": {Data: []byte("server 10.0.0.3;\n")},
		"etc/nginx/bad.conf":      {Data: []byte("\nupstream c {\n server a weight=0;\n}")},
		"etc/nginx/loop.conf":     {Data: []byte("include loop.conf;")},
	}
	opts := &nginxconf.ParseOptions{Include: nginxconf.IncludeFS(files, "etc/nginx")}
	p, err := nginxconf.Parse("http { include /etc/nginx/conf.d/*.conf; include none-*.conf; }", opts)
	require.NoError(t, err)
	require.Len(t, p.Blocks, 2)
	assert.Equal(t, "etc/nginx/conf.d/b.conf", p.Blocks[1].File)
	assert.Len(t, p.Blocks[1].Config.Servers, 2)

	e := refusal(t, "include bad.conf;", opts)
	assert.Equal(t, "etc/nginx/bad.conf", e.File)
	assert.Equal(t, 3, e.Line)
	assert.Equal(t, `trunk: etc/nginx/bad.conf:3: invalid parameter "weight=0" (write weight=N with a whole number from 1)`, e.Error())

	e = refusal(t, "include none.conf;", opts)
	assert.Equal(t, `open() "none.conf" failed (2: No such file or directory)`, e.Message)
	assert.ErrorIs(t, e, fs.ErrNotExist)
	assert.Contains(t, refusal(t, "include loop.conf;", opts).Message, "Too many open files")
}

func TestRetryComesFromTheLocation(t *testing.T) {
	text := `
upstream u { server 10.0.0.1; server 10.0.0.2; }
proxy_read_timeout 30s;
server {
    proxy_next_upstream_tries 3;
    location / {
        proxy_pass http://u;
        proxy_next_upstream error timeout http_502 non_idempotent;
        proxy_next_upstream_timeout 1500ms;
        proxy_connect_timeout 2;
    }
    location /other { proxy_pass http://elsewhere; proxy_connect_timeout 9s; }
}`
	want := balancer.Retry{
		On: balancer.KindError | balancer.KindTimeout | balancer.KindHTTP502, NonIdempotent: true,
		Tries: 3, Timeout: 1500 * time.Millisecond,
		ConnectTimeout: 2 * time.Second, ReadTimeout: 30 * time.Second,
	}
	assert.Equal(t, want, parseOne(t, text, nil).Config.Retry)

	for _, pass := range []string{"https://U", "http://u/", "http://u/x?y", "http://u$request_uri", "http://u/$1"} {
		b := parseOne(t, "upstream u { server a; } server { location / { proxy_pass "+pass+"; proxy_next_upstream off; } }", nil)
		assert.True(t, b.Config.Retry.Off, pass)
	}
	for _, pass := range []string{"http://$host", "http://unix:/u", "http://v"} {
		b := parseOne(t, "upstream u { server a; } server { location / { proxy_pass "+pass+"; proxy_next_upstream off; } }", nil)
		assert.Zero(t, b.Config.Retry, pass)
	}
	b := parseOne(t, "upstream u { server a; } server { location / { fastcgi_pass u; fastcgi_read_timeout 7s; proxy_read_timeout 8s; } }", nil)
	assert.Equal(t, 7*time.Second, b.Config.Retry.ReadTimeout)
	b = parseOne(t, "stream { upstream u { server a:1; } proxy_timeout 3s; server { proxy_pass u; proxy_next_upstream off; } }", nil)
	assert.Equal(t, balancer.Retry{Off: true, ReadTimeout: 3 * time.Second, SendTimeout: 3 * time.Second}, b.Config.Retry)
}

func TestRetryOfSeveralLocations(t *testing.T) {
	text := `upstream u { server 10.0.0.1; server 10.0.0.2; }
server {
    location / { proxy_pass http://u; proxy_read_timeout 1s; }
    location = /slow { proxy_pass http://u; proxy_read_timeout 9s; }
    location /same { proxy_pass http://u; proxy_read_timeout 1s; }
}`
	b := parseOne(t, text, nil)
	assert.Equal(t, time.Second, b.Config.Retry.ReadTimeout, "the first one's")
	require.Equal(t, []balancer.Code{nginxconf.CodeRetryDiffers}, codes(b.Config.Warnings))
	assert.Contains(t, b.Config.Warnings[0].Message, "location / (line 3)")
	assert.Contains(t, b.Config.Warnings[0].Message, "location = /slow (line 4)")
	assert.NotContains(t, b.Config.Warnings[0].Message, "same")

	b = parseOne(t, text, &nginxconf.ParseOptions{Location: "= /slow"})
	assert.Equal(t, 9*time.Second, b.Config.Retry.ReadTimeout)
	assert.Empty(t, b.Config.Warnings)

	p, err := nginxconf.Parse(text, &nginxconf.ParseOptions{Location: "/none"})
	require.NoError(t, err)
	assert.Equal(t, []balancer.Code{nginxconf.CodeLocation}, codes(p.Warnings))
}

func TestHints(t *testing.T) {
	for text, hint := range map[string]string{
		"upstream u { // servers\n server a; }":              "comments begin with #",
		"upstream u { server http://10.0.0.1:80/; }":         "a server has no scheme: write 10.0.0.1:80",
		"upstream u { server a/b; }":                         "a server has no path: write a",
		"upstream u { server ::1; }":                         "an IPv6 address is written in brackets: [::1]",
		"upstream u { server a\n server b; }":                "the directive begins in line 1: is its ; missing?",
		"upstream u { server a }":                            "the ; behind server a is missing",
		"upstream u { server a weight = 2; }":                "write NAME=VALUE without spaces",
		"upstream u { server a weight=2, backup; }":          "without commas",
		`upstream u { server a weight="2"; }`:                "quotes go around the whole word",
		"upstream u { server a max_fail=3; }":                "did you mean max_fails?",
		"upstream u { server a fail_timeout=500ms; }":        "whole seconds",
		"upstream u { server a Backup; }":                    "in lower case",
		"upstream u { server a b:80; }":                      "one server line has one address",
		"upstream u { least-conn; server a; }":               "did you mean least_conn?",
		"upstream u { round_robin; server a; }":              "leave the line out",
		"upstream u { 10.0.0.1:80; }":                        "is the word server missing",
		"upstream u { server a; max_conns 3; }":              "max_conns is a parameter of server: write max_conns=N",
		"upstream u { server {{ host }}; }":                  "this is a template",
		"upstream {{ name }} { server a; }":                  "this is a template",
		"upstream u { server $host; }":                       "nginx knows no variables here",
		"upstream u { server a; ":                            "the block upstream u { of line 1 is not closed",
		"upstream u { server 'a; }":                          "a closing quote is missing",
		"upstream u { server a； }":                           "full-width",
		"\ufeffupstream u { server a; }":                     "byte order mark",
		"upstream u {\u00a0server a; }":                      "invisible character, U+00A0",
		"upstream u { keepalive 1; keepalive 2; server a; }": "once is enough",
		"upstream u { server a; };":                          "one semicolon too many",
		"upstream u { hash $a $b consistent; server a; }":    "quotes go around a key with spaces",
		"upstream u { location / { } }":                      "is its closing brace missing?",
	} {
		t.Run(text, func(t *testing.T) {
			assert.Contains(t, refusal(t, text, nil).Hint, hint)
		})
	}
}

func TestNewUpstream(t *testing.T) {
	up, err := nginxconf.NewUpstream(context.Background(), "upstream u { server 10.0.0.1; server 10.0.0.2; }")
	require.NoError(t, err)
	require.NoError(t, up.Close())
	for _, text := range []string{"", "upstream u { server a; } upstream v { server a; }", "upstream u { }"} {
		_, err := nginxconf.NewUpstream(context.Background(), text)
		var e *nginxconf.ParseError
		assert.ErrorAs(t, err, &e, text)
	}
}

func ExampleParse() {
	parsed, err := nginxconf.Parse(`
upstream backend {
    zone backend 64k;
    hash $request_uri;
    server 10.0.0.1:8080 weight=5;
    server 10.0.0.2:8080 max_fails=3;
}
server {
    location / {
        proxy_pass http://backend;
        proxy_next_upstream error timeout http_503;
    }
}`, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := parsed.Blocks[0]
	fmt.Print(nginxconf.Format(b.Config))
	for _, o := range b.Ignored {
		fmt.Println("without effect:", o.Words)
	}
	// Output:
	// upstream backend {
	//     hash $request_uri;
	//     server 10.0.0.1:8080 weight=5;
	//     server 10.0.0.2:8080 max_fails=3;
	// }
	// server {
	//     location / {
	//         proxy_pass http://backend;
	//         proxy_next_upstream error timeout http_503;
	//     }
	// }
	// without effect: [zone backend 64k]
}

// What Lint says of a block is told once, with its line where it has one.
func TestNewUpstreamWarnsOnce(t *testing.T) {
	up, err := nginxconf.NewUpstream(context.Background(), "upstream u {\n  least_conn;\n  random two;\n  server 10.0.0.1 weight=9;\n  server 10.0.0.2 max_fails=5;\n}")
	require.NoError(t, err)
	defer up.Close()
	var told []string
	for _, w := range up.Warnings() {
		told = append(told, fmt.Sprint(w.Line, " ", w.Code))
	}
	require.Equal(t, []string{"3 method-redefined", "1 random-two-weights"}, told)
}
