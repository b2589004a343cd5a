package nginxconf_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/sticky"
)

var convert = &nginxconf.ParseOptions{Convert: true}

// Resin's session ids begin with the srun_id; Tomcat's, with reverse, end in it. The
// longest one counts.
func TestConvertJvmRoute(t *testing.T) {
	variable := func(text string) func(*http.Request) string {
		b := parseOne(t, "upstream u { "+text+"; server a srun_id=a; server b srun_id=b; server c srun_id=ab; }", convert)
		assert.Equal(t, sticky.Route{Variables: []string{"$jvm_route"}}, b.Config.Sticky)
		assert.Equal(t, "ab", b.Config.Servers[2].Route)
		return b.Config.Variables["jvm_route"]
	}
	request := func(path, cookie string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		}
		return r
	}
	tomcat := variable("jvm_route $cookie_JSESSIONID|jsessionid reverse")
	assert.Equal(t, "b", tomcat(request("/", "JSESSIONID=ABC.b")))
	assert.Equal(t, "b", tomcat(request("/", "jsessionid=ABC.b")), "nginx does not mind the case of a variable's name")
	assert.Equal(t, "ab", tomcat(request("/", "JSESSIONID=ABC.ab")), "the longest")
	assert.Equal(t, "a", tomcat(request("/app;jsessionid=ABC.a;v=1", "")), "of the URL")
	assert.Equal(t, "b", tomcat(request("/app;jsessionid=ABC.a", "JSESSIONID=ABC.b")), "the cookie goes first")
	assert.Empty(t, tomcat(request("/", "JSESSIONID=ABC.x")))
	assert.Empty(t, tomcat(request("/", "")))

	resin := variable("jvm_route $cookie_JSESSIONID")
	assert.Equal(t, "a", resin(request("/", "JSESSIONID=aXYZ.b")))
	assert.Equal(t, "ab", resin(request("/", "JSESSIONID=abXYZ")), "the longest")
	assert.Empty(t, resin(request("/", "JSESSIONID=XYZ.b")))
}

// A location that passes to a variable may pass to the upstream; what it says of
// retries is not lost without a word.
func TestRetriesOfAPassToAVariable(t *testing.T) {
	text := `upstream u { server 10.0.0.1; server 10.0.0.2; }
server {
    location /a { proxy_pass http://$pool; proxy_next_upstream_tries 2; }
    location /b { proxy_pass http://$pool; }
}`
	f, err := nginxconf.Parse(text, nil)
	require.NoError(t, err)
	require.Equal(t, []balancer.Code{nginxconf.CodeRetryUnread}, codes(f.Warnings))
	assert.Equal(t, 3, f.Warnings[0].Line)
	assert.Contains(t, f.Warnings[0].Message, "location /a")
	assert.Zero(t, f.Blocks[0].Config.Retry)

	f, err = nginxconf.Parse(text, &nginxconf.ParseOptions{Location: "/a"})
	require.NoError(t, err)
	assert.Empty(t, f.Warnings)
	assert.Equal(t, 2, f.Blocks[0].Config.Retry.Tries, "the caller has named the location")
}

// nginx judges a pass with variables for each request.
func TestPassesWithVariablesAreTaken(t *testing.T) {
	for _, pass := range []string{"http:/$uri", "htt$arg_p://u", "$scheme://u", "http://$host", "u$uri", "http://u:${server_port}"} {
		parseOne(t, "upstream u { server 10.0.0.1; } server { location / { proxy_pass "+pass+"; } }", nil)
	}
	assert.Equal(t, "invalid URL prefix", refusal(t, "server { location / { proxy_pass http:/u; } }", nil).Message)
}

func TestVariablesThatNginxHasAndTrunkHasNot(t *testing.T) {
	text := "map $host $pick { default x; }\nupstream u {\n  hash $pick;\n  server 10.0.0.1;\n  server 10.0.0.2;\n}"
	b := parseOne(t, text, nil)
	require.Equal(t, []balancer.Code{balancer.CodeUnknownVariable}, codes(b.Config.Warnings))
	assert.Equal(t, "$pick", b.Config.Warnings[0].Word)
	assert.Equal(t, 3, b.Config.Warnings[0].Line)

	_, err := nginxconf.NewUpstream(t.Context(), text)
	var e *nginxconf.ParseError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, 3, e.Line)
	assert.Contains(t, e.Hint, "Config.Variables")
	var unknown *balancer.VariableError
	require.ErrorAs(t, err, &unknown)
	assert.Contains(t, unknown.Error(), "Config.Variables")

	b = parseOne(t, text, &nginxconf.ParseOptions{Variables: map[string]func(*http.Request) string{"pick": func(*http.Request) string { return "" }}})
	assert.Empty(t, b.Config.Warnings)
}

// In stream the program brings the key, whatever variable nginx would make it of.
func TestStreamVariablesLeaveTheKeyToTheProgram(t *testing.T) {
	for _, name := range []string{"$proxy_protocol_addr", "$server_port", "$ssl_preread_server_name", "$server_port$protocol"} {
		f, err := nginxconf.Parse("stream { upstream u {\n hash "+name+";\n server 10.0.0.1:1; server 10.0.0.2:1; } }", nil)
		require.NoError(t, err)
		c := f.Blocks[0].Config
		require.NotEmpty(t, c.Warnings, name)
		assert.Equal(t, balancer.CodeUnknownVariable, c.Warnings[0].Code)
		assert.Equal(t, 2, c.Warnings[0].Line)
		assert.Contains(t, c.Warnings[0].Hint, "Input.Key")
		up, err := balancer.New(t.Context(), c)
		require.NoError(t, err, name)
		first := map[string]bool{}
		for _, key := range []string{"a", "b", "c", "d"} {
			try := up.Start(t.Context(), balancer.Input{Key: key})
			require.True(t, try.Next())
			first[try.Peer().Server.Addr] = true
			try.Close()
		}
		assert.Len(t, first, 2, "the key that was brought decides")
		require.NoError(t, up.Close())
	}
}

// Each protocol has kinds of its own.
func TestNextUpstreamKindsOfEachFamily(t *testing.T) {
	of := func(directive string) string {
		family, _, _ := strings.Cut(directive, "_")
		pass := family + "_pass u;"
		if family == "proxy" {
			pass = "proxy_pass http://u;"
		}
		return "upstream u { server 10.0.0.1; } server { location / { " + pass + " " + directive + "; } }"
	}
	for directive, want := range map[string]balancer.Kind{
		"proxy_next_upstream http_502 HTTP_504":                balancer.KindHTTP502 | balancer.KindHTTP504,
		"memcached_next_upstream not_found invalid_response":   balancer.KindHTTP404 | balancer.KindInvalidHeader,
		"grpc_next_upstream http_502 non_idempotent":           balancer.KindHTTP502,
		"fastcgi_next_upstream http_503 invalid_header":        balancer.KindHTTP503 | balancer.KindInvalidHeader,
		"uwsgi_next_upstream http_500 updating":                balancer.KindHTTP500,
		"scgi_next_upstream off":                               0,
		"proxy_next_upstream error; proxy_next_upstream error": balancer.KindError,
	} {
		assert.Equal(t, want, parseOne(t, of(directive), nil).Config.Retry.On, directive)
	}
	for directive, word := range map[string]string{
		"fastcgi_next_upstream http_502":       "http_502",
		"uwsgi_next_upstream http_504":         "http_504",
		"scgi_next_upstream error http_502":    "http_502",
		"memcached_next_upstream http_500":     "http_500",
		"memcached_next_upstream updating":     "updating",
		"grpc_next_upstream updating":          "updating",
		"proxy_next_upstream not_found":        "not_found",
		"proxy_next_upstream connect":          "connect", // trunk's own
		"fastcgi_next_upstream non-idempotent": "non-idempotent",
	} {
		assert.Equal(t, `invalid value "`+word+`"`, refusal(t, of(directive), nil).Message, directive)
	}
	f, err := nginxconf.Parse(of("proxy_next_upstream error error"), nil)
	require.NoError(t, err)
	require.Equal(t, []balancer.Code{nginxconf.CodeDuplicateValue}, codes(f.Warnings))
	assert.Equal(t, `duplicate value "error"`, f.Warnings[0].Message)
}

// What has no effect is listed, whatever it is.
func TestNothingIsIgnoredWithoutAWord(t *testing.T) {
	f, err := nginxconf.Parse("upstream u { server 10.0.0.1; } server { location / { proxy_pass http://u; proxy_next_upstream error updating; } }", nil)
	require.NoError(t, err)
	require.Len(t, f.Ignored, 1)
	assert.Equal(t, []string{"proxy_next_upstream", "updating"}, f.Ignored[0].Words)

	f, err = nginxconf.Parse("include conf.d/*.conf; upstream u { server 10.0.0.1; include servers/*; }",
		&nginxconf.ParseOptions{Include: nginxconf.IncludeFS(fstest.MapFS{}, "")})
	require.NoError(t, err)
	require.Len(t, f.Ignored, 2)
	assert.Equal(t, []string{"include", "conf.d/*.conf"}, f.Ignored[0].Words)
	assert.Equal(t, "u", f.Ignored[1].Upstream)
	assert.Contains(t, f.Ignored[1].Instead, "no file matches")

	for _, text := range []string{
		"tcp { upstream u { server 10.0.0.1; } }",
		"http { } tcp { upstream u { server 10.0.0.1; } }",
		"http { module_of_ones_own { inner { upstream u { server 10.0.0.1; } } } }",
	} {
		assert.Equal(t, nginxconf.ClassServers, refusal(t, text, nil).Class, text)
		f, err = nginxconf.Parse(text, &nginxconf.ParseOptions{Lenient: true})
		require.NoError(t, err)
		require.Len(t, f.Ignored, 1)
		assert.Contains(t, f.Ignored[0].Instead, "upstreams are not read", text)
	}
}

// Every parameter and directive that nginx takes once is taken once, and zeros are what
// they are to nginx.
func TestDuplicatesAndZeros(t *testing.T) {
	const learn = "sticky learn create=$upstream_cookie_s lookup=$cookie_s zone=s:1m"
	in := func(line string) string { return "upstream u { " + line + "; server 10.0.0.1; }" }
	loc := func(lines string) string {
		return "upstream u { server 10.0.0.1; } server { location / { " + lines + "; } }"
	}
	stream := func(lines string) string {
		return "stream { upstream u { server 10.0.0.1:1; } server { " + lines + "; } }"
	}
	for text, message := range map[string]string{
		in(learn + " timeout=0"):                                        `"sticky" directive invalid timeout`,
		in(learn + " timeout=0s"):                                       `"sticky" directive invalid timeout`,
		in(learn + " timeout=1h timeout=1h"):                            `"sticky" directive duplicate timeout`,
		in(learn + " zone=t:1m"):                                        `"sticky" directive duplicate zone`,
		in("sticky cookie a path=/ path=/"):                             `"sticky" directive parameter "path" is duplicate`,
		in("sticky cookie a secure secure"):                             `"sticky" directive parameter "secure" is duplicate`,
		in("least_time inflight header"):                                `invalid parameter "header"`,
		in("least_time x y"):                                            `invalid parameter "y"`,
		in("least_time inflight"):                                       `invalid value "inflight"`,
		in("least_time header; least_time header"):                      `"least_time" directive is duplicate`,
		in("keepalive 1; keepalive 1"):                                  `"keepalive" directive is duplicate`,
		in("keepalive_time 1h; keepalive_time 1h"):                      `"keepalive_time" directive is duplicate`,
		in("keepalive_requests 0; keepalive_requests 0"):                `"keepalive_requests" directive is duplicate`,
		in("resolver 10.0.0.53; resolver 10.0.0.53"):                    `"resolver" directive is duplicate`,
		in("resolver_timeout 0; resolver_timeout 0"):                    `"resolver_timeout" directive is duplicate`,
		in("server 10.0.0.2 weight=0"):                                  `invalid parameter "weight=0"`,
		"resolver 10.0.0.53; resolver 10.0.0.53;":                       `"resolver" directive is duplicate`,
		"resolver_timeout 1s; resolver_timeout 1s;":                     `"resolver_timeout" directive is duplicate`,
		loc("proxy_pass http://u; proxy_pass http://u"):                 `"proxy_pass" directive is duplicate`,
		loc("fastcgi_pass u; fastcgi_pass u"):                           `"fastcgi_pass" directive is duplicate`,
		loc("proxy_pass http://$x; proxy_pass http://u"):                `"proxy_pass" directive is duplicate`,
		loc("proxy_read_timeout 1; proxy_read_timeout 1"):               `"proxy_read_timeout" directive is duplicate`,
		loc("proxy_next_upstream_tries 0; proxy_next_upstream_tries 0"): `"proxy_next_upstream_tries" directive is duplicate`,
		stream("proxy_pass u; proxy_pass u"):                            `"proxy_pass" directive is duplicate`,
		stream("proxy_next_upstream on; proxy_next_upstream on"):        `"proxy_next_upstream" directive is duplicate`,
	} {
		assert.Equal(t, message, refusal(t, text, nil).Message, text)
	}
	// Of a server's parameters the last counts.
	b := parseOne(t, in("server 10.0.0.2 weight=2 weight=3 max_conns=1 max_conns=0 max_fails=2 max_fails=0 fail_timeout=1 fail_timeout=0 backup backup down drain"), nil)
	assert.Equal(t, balancer.Server{Addr: "10.0.0.2:80", Name: "10.0.0.2", Weight: 3, MaxFails: balancer.NoMaxFails, FailTimeout: balancer.NoFailTimeout,
		Backup: true, Drain: true}, b.Config.Servers[0])
	// A second is the shortest that nginx keeps an answer; no limit there is the default here.
	b = parseOne(t, in("resolver 10.0.0.53 valid=0; resolver_timeout 0"), nil)
	assert.Equal(t, time.Second, b.Config.ResolveInterval)
	assert.Zero(t, b.Config.ResolveTimeout)
	assert.Equal(t, []balancer.Code{nginxconf.CodeTimeoutZero}, codes(b.Config.Warnings))
}

// nginx keeps the names of variables in lower case.
func TestNamesOfVariablesAreInLowerCase(t *testing.T) {
	b := parseOne(t, "upstream u { sticky route $Cookie_JSESSIONID $arg_ID; server 10.0.0.1; }", nil)
	assert.Equal(t, sticky.Route{Variables: []string{"$cookie_jsessionid", "$arg_id"}}, b.Config.Sticky)
	b = parseOne(t, "upstream u { sticky learn create=$upstream_cookie_JSESSIONID lookup=$cookie_JSESSIONID zone=s:1m; server 10.0.0.1; }", nil)
	assert.Equal(t, []string{"$upstream_cookie_jsessionid"}, b.Config.Sticky.(sticky.Learn).Create)
	assert.Equal(t, []string{"$cookie_jsessionid"}, b.Config.Sticky.(sticky.Learn).Lookup)
	parseOne(t, "server { set $Tenant x; } upstream u { hash $TENANT; server 10.0.0.1; }", nil)
}

// A block prints the location that it was read with.
func TestALocationPrintsInItsOwnFamily(t *testing.T) {
	for _, location := range []string{
		"fastcgi_pass u;\n        fastcgi_next_upstream http_503;\n        fastcgi_read_timeout 7s;",
		"uwsgi_pass uwsgi://u;\n        uwsgi_next_upstream_tries 2;",
		"scgi_pass u;\n        scgi_connect_timeout 1s;",
		"grpc_pass grpcs://u;\n        grpc_next_upstream http_502;",
		"memcached_pass u;\n        memcached_next_upstream invalid_response not_found;",
		"proxy_pass https://u/v1;\n        proxy_send_timeout 1s;",
	} {
		text := "upstream u {\n    server 10.0.0.1;\n}\nserver {\n    location / {\n        " + location + "\n    }\n}\n"
		assert.Equal(t, text, parseOne(t, text, nil).String())
	}
	b := parseOne(t, "upstream u { server 10.0.0.1; } server { location / { memcached_pass u; memcached_next_upstream not_found; } }", nil)
	b.Config.Retry.On |= balancer.KindHTTP500
	assert.Contains(t, b.String(), "# Retry.On has what memcached_next_upstream has no words for: http_500\n")
}

// Zone and resolver print as they were read, and the resolver's families are obeyed.
func TestZoneAndResolver(t *testing.T) {
	for _, text := range []string{
		"upstream u {\n    zone shared 64k;\n    # nginx asks this name server; trunk asks Config.Resolver\n    resolver 10.0.0.53 [::1]:5353 valid=10s ipv6=off;\n    resolver_timeout 2s;\n    server app.example:80 resolve;\n}\n",
		"upstream u {\n    zone shared 1m;\n    server 10.0.0.1:80;\n}\n",
	} {
		assert.Equal(t, text, parseOne(t, text, nil).String())
	}
	b := parseOne(t, "resolver 10.0.0.53 valid=7s ipv4=off; resolver_timeout 3s; upstream u { zone u 64k; server app.example resolve; }", nil)
	assert.Equal(t, []string{"10.0.0.53", "valid=7s", "ipv4=off"}, b.Resolver, "the section's")
	assert.Equal(t, 7*time.Second, b.Config.ResolveInterval)
	assert.Equal(t, 3*time.Second, b.Config.ResolveTimeout)
	assert.Equal(t, "ip6", b.Config.ResolveNetwork)
	require.Len(t, b.Ignored, 2)
	assert.Contains(t, b.Ignored[1].Instead, "its addresses are not asked")

	b = parseOne(t, "resolver 10.0.0.53 valid=7s; upstream u { server 10.0.0.1; }", nil)
	assert.Nil(t, b.Resolver, "without a zone nginx looks nothing up again")
	for text, message := range map[string]string{
		"resolver 10.0.0.53 ipv4=off ipv6=off;": `"ipv4" and "ipv6" cannot both be "off"`,
		"resolver valid=1s;":                    "no name servers defined",
		"resolver 10.0.0.53 ipv6=no;":           "invalid parameter: ipv6=no",
	} {
		assert.Equal(t, message, refusal(t, text, nil).Message)
	}
}

// A struct that nothing in nginx stands for prints what is set in it, and no zeros.
func TestOnlyWhatIsSetIsPrinted(t *testing.T) {
	text := nginxconf.Format(balancer.Config{Name: "u", Servers: []balancer.Server{{Addr: "10.0.0.1:80"}},
		Policy: balancer.Policy{SlowStart: time.Minute}})
	assert.Contains(t, text, "# Policy is trunk's own: {SlowStart: 1m0s}\n")
}

func TestConvertOtherModules(t *testing.T) {
	b := parseOne(t, "upstream u { session_sticky cookie=sid domain=.x path=/ maxage=3600 mode=insert option=indirect; server a; }", convert)
	assert.Equal(t, sticky.Cookie{Name: "sid", Domain: ".x", Path: "/", Expires: time.Hour}, b.Config.Sticky)
	assert.Equal(t, []string{"option=indirect"}, b.Ignored[0].Words)
	b = parseOne(t, "upstream u { session_sticky mode=rewrite; server a; }", convert)
	assert.Equal(t, sticky.Cookie{Name: "route"}, b.Config.Sticky)
	assert.Contains(t, b.Ignored[0].Instead, "sticky learn")

	b = parseOne(t, "upstream u { sticky name=srv hmac=sha1 hmac_key=secret no_fallback; server a; }", convert)
	assert.Contains(t, b.Ignored[0].Instead, "Cookie.Secrets")
	assert.Contains(t, b.Ignored[1].Instead, "Cookie.Secrets")
	assert.Contains(t, b.Ignored[2].Instead, "goes to another one")

	b = parseOne(t, "upstream u { dynamic_resolve fallback=stale; server app.example; server 10.0.0.1; }", convert)
	assert.True(t, b.Config.Servers[0].Resolve)
	assert.False(t, b.Config.Servers[1].Resolve)

	b = parseOne(t, "upstream u { server 0.0.0.1; balancer_by_lua_block { return } }", &nginxconf.ParseOptions{AllowChoice: true})
	assert.Equal(t, []balancer.Code{balancer.CodePlaceholder}, codes(b.Config.Warnings))
}

func TestAllRefusalsInOneReading(t *testing.T) {
	f, err := nginxconf.Parse(`upstream u {
    server 10.0.0.1 weight=0;
    fair;
    server 10.0.0.2;
}
upstream v { server 10.0.0.3 max_fail=3; }
upstream U { server 10.0.0.4; }
server { location / { proxy_pass u; proxy_read_timeout x; } }
upstream w { hash $nothing; server 10.0.0.5; ;
`, &nginxconf.ParseOptions{All: true})
	var lines []int
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var refused *nginxconf.ParseError
		require.ErrorAs(t, e, &refused)
		lines = append(lines, refused.Line)
	}
	assert.Equal(t, []int{2, 3, 6, 7, 8, 8, 9, 0}, lines)
	require.Len(t, f.Blocks, 3)
	assert.Equal(t, "10.0.0.2:80", f.Blocks[0].Config.Servers[0].Addr)
	assert.Len(t, f.Blocks[0].Config.Servers, 1)

	f, err = nginxconf.Parse("upstream u { server 10.0.0.1; }", &nginxconf.ParseOptions{All: true})
	require.NoError(t, err)
	require.Len(t, f.Blocks, 1)
	_, err = nginxconf.Parse(strings.Repeat("a;\n", 10_000), &nginxconf.ParseOptions{All: true})
	assert.Len(t, err.(interface{ Unwrap() []error }).Unwrap(), 1001, "and an end of it")
}

func TestHintsForUnitsWithASpace(t *testing.T) {
	for text, hint := range map[string]string{
		"upstream u { server a fail_timeout=30 s; }":       "write fail_timeout=30s",
		"upstream u { keepalive_timeout 60 s; server a; }": "write 60s",
		"upstream u { zone u 64 k; server a; }":            "write 64k",
	} {
		assert.Contains(t, refusal(t, text, nil).Hint, hint, text)
	}
}

// Whatever is in the way of an include, the answer is an error, at once, with no word of
// a file's content in it.
func TestIncludeFSIsBounded(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	link := func(target, name string) { require.NoError(t, os.Symlink(target, filepath.Join(root, name))) }
	write(outside, "secret", "root:x:0:0 upstream")
	write(root, "available/a", "upstream a { server 10.0.0.1; }")
	write(root, "large", strings.Repeat("#", 16<<20+1))
	require.NoError(t, os.Mkdir(filepath.Join(root, "dir"), 0o700))
	link("available/a", "relative")
	link("/available/a", "absolute")
	link(filepath.Join(outside, "secret"), "away")
	link("../"+filepath.Base(outside)+"/secret", "up")
	link("loop", "loop")
	read := func(name string) error {
		_, err := nginxconf.Parse("include "+name+";", &nginxconf.ParseOptions{Include: nginxconf.IncludeFS(os.DirFS(root), "")})
		return err
	}
	require.NoError(t, read("relative"))
	require.NoError(t, read("absolute"), "from the root of the file system")
	for _, name := range []string{"away", "up", "loop", "large", "dir", "none"} {
		err := read(name)
		var e *nginxconf.ParseError
		require.ErrorAs(t, err, &e, name)
		assert.Equal(t, nginxconf.ClassServers, e.Class)
		assert.NotContains(t, err.Error(), "root", name)
	}
	assert.Contains(t, read("up").Error(), "leads out")
	assert.Contains(t, read("large").Error(), "too large")
	assert.Contains(t, read("dir").Error(), "not a regular file")
	assert.ErrorIs(t, read("none"), fs.ErrNotExist)

	// Devices and FIFOs are not opened.
	odd := fstest.MapFS{"zero": {Mode: fs.ModeDevice}, "fifo": {Mode: fs.ModeNamedPipe}}
	for name := range odd {
		_, err := nginxconf.IncludeFS(unopened{odd}, "")(name)
		assert.ErrorContains(t, err, "not a regular file")
	}
}

// unopened fails where anything is opened.
type unopened struct{ fstest.MapFS }

func (unopened) Open(name string) (fs.File, error) { return nil, errors.New(name + " was opened") }

// Files that include a hundred files each end early, as do deep ones and large ones.
func TestIncludesAreBoundedTogether(t *testing.T) {
	asked := 0
	include := func(pattern string) (out []nginxconf.IncludeFile, err error) {
		asked++
		for i := range 100 {
			out = append(out, nginxconf.IncludeFile{Name: pattern + string(rune('A'+i)), Text: "include " + pattern + "x;"})
		}
		return out, nil
	}
	for _, all := range []bool{false, true} {
		asked = 0
		_, err := nginxconf.Parse("include x;", &nginxconf.ParseOptions{Include: include, All: all})
		require.ErrorContains(t, err, "Too many open files")
		assert.LessOrEqual(t, asked, 101)
	}
	deep := func(pattern string) ([]nginxconf.IncludeFile, error) {
		return []nginxconf.IncludeFile{{Name: pattern, Text: "include " + pattern + "x;"}}, nil
	}
	_, err := nginxconf.Parse("include x;", &nginxconf.ParseOptions{Include: deep})
	require.ErrorContains(t, err, "Too many open files")
	large := func(pattern string) ([]nginxconf.IncludeFile, error) {
		return []nginxconf.IncludeFile{{Name: pattern, Text: strings.Repeat("#\n", 4<<20)}}, nil
	}
	_, err = nginxconf.Parse(strings.Repeat("include x;", 20), &nginxconf.ParseOptions{Include: large})
	require.ErrorContains(t, err, "File too large")
}
