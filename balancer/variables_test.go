package balancer

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
)

// received is a request as a server has read it.
func received(t *testing.T, text string) *http.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n\r\n")))
	require.NoError(t, err)
	r.RemoteAddr = "192.0.2.7:4711"
	return r
}

// made is a request as a client makes it.
func made(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	require.NoError(t, err)
	return r
}

// posted is a client's request with that body.
func posted(method string, body io.Reader) *http.Request {
	r, err := http.NewRequest(method, "http://backend/", body)
	if err != nil {
		panic(err)
	}
	return r
}

func TestVariables(t *testing.T) {
	server := received(t, `POST //a/./b/../c%20d?x=1&Y=%41&x=2&e= HTTP/1.1
Host: Example.COM:8080
User-Agent: curl
X-Multi: one
X-Multi: two
Cookie: a=1; Sess=abc; b=2
Cookie: c = 3
Content-Length: 0
Content-Type: text/plain
X-Forwarded-For: 10.9.8.7
Authorization: Basic dXNlcjpwYXNz`)
	v6 := received(t, "GET / HTTP/1.0\nHost: [2001:db8::1]:80")
	v6.RemoteAddr = "[2001:db8::2%eth0]:1"
	mapped := received(t, "GET / HTTP/1.0\nHost: x")
	mapped.RemoteAddr = "[::ffff:192.0.2.9]:1"
	secure := received(t, "GET / HTTP/1.1\nHost: x")
	secure.TLS = &tls.ConnectionState{}
	unix := received(t, "GET / HTTP/1.1\nHost: x")
	unix.RemoteAddr = "@"
	cookies := received(t, "GET / HTTP/1.1\nHost: x\nCookie: prefs=1,srv=b; srv\nCookie: srv=c")
	client := made(t, "https://Backend:443/p/a%2Fth?q=1&u=42")
	hosted := made(t, "http://backend/")
	hosted.Host = "Other"

	for _, tc := range []struct {
		text string
		r    *http.Request
		want string
	}{
		{"", server, ""},
		{"constant", server, "constant"},
		{"$host", server, "example.com"},
		{"$HOST", server, "example.com"},
		{"$http_host", server, "Example.COM:8080"},
		{"$host", v6, "[2001:db8::1]"},
		{"$host", client, "backend"},
		{"$host", hosted, "other"},
		{"$uri", server, "/a/c d"},
		{"$document_uri", client, "/p/a/th"},
		{"$uri", hosted, "/"},
		{"$request_uri", server, "//a/./b/../c%20d?x=1&Y=%41&x=2&e="},
		{"$request_uri", client, "/p/a%2Fth?q=1&u=42"},
		{"$args", server, "x=1&Y=%41&x=2&e="},
		{"$query_string", client, "q=1&u=42"},
		{"$is_args", client, "?"},
		{"$is_args", hosted, ""},
		{"$arg_x", server, "1"},
		{"$arg_y", server, "%41"},
		{"$arg_e", server, ""},
		{"$arg_none", server, ""},
		{"$arg_u", client, "42"},
		{"$cookie_sess", server, "abc"},
		{"$cookie_b", server, "2"},
		{"$cookie_c", server, "3"},
		{"$cookie_none", server, ""},
		{"$cookie_srv", cookies, "c"},
		{"$arg_sid", received(t, "GET /?\u017Fid=8&sid=9 HTTP/1.1\nHost: x"), "9"},
		{"$http_cookie", server, "a=1; Sess=abc; b=2; c = 3"},
		{"$http_user_agent", server, "curl"},
		{"$http_x_multi", server, "one, two"},
		{"$http_none", server, ""},
		{"$request_method", server, "POST"},
		{"$server_protocol", server, "HTTP/1.1"},
		{"$request", v6, "GET / HTTP/1.0"},
		{"$scheme", server, "http"},
		{"$scheme", secure, "https"},
		{"$https", secure, "on"},
		{"$https", server, ""},
		{"$scheme", client, "https"},
		{"$remote_addr", server, "192.0.2.7"},
		{"$remote_port", server, "4711"},
		{"$remote_addr", v6, "2001:db8::2"},
		{"$remote_addr", mapped, "192.0.2.9"},
		{"$remote_addr", client, ""},
		{"$remote_addr", unix, ""},
		{"$binary_remote_addr", server, "\xc0\x00\x02\x07"},
		{"$proxy_add_x_forwarded_for", server, "10.9.8.7, 192.0.2.7"},
		{"$proxy_add_x_forwarded_for", mapped, "192.0.2.9"},
		{"$content_length", server, "0"},
		{"$content_length", v6, ""},
		{"$content_length", client, ""},
		{"$content_length", posted("POST", nil), "0"}, // net/http sends it
		{"$content_length", posted("PUT", http.NoBody), "0"},
		{"$content_length", posted("PATCH", nil), "0"},
		{"$content_length", posted("DELETE", nil), ""},
		{"$content_length", posted("POST", strings.NewReader("abc")), "3"},
		{"$content_length", posted("POST", io.MultiReader()), ""}, // chunked
		{"$content_type", server, "text/plain"},
		{"$remote_user", server, "user"},
		{"$host$request_uri", client, "backend/p/a%2Fth?q=1&u=42"},
		{"a-${scheme}b$arg_u-", client, "a-httpsb42-"},
		{"x$1y", client, "xy"},
		{"$mine/$host", client, "own/backend"},
	} {
		own := map[string]func(*http.Request) string{"Mine": func(*http.Request) string { return "own" }}
		got, err := compile(tc.text, own)
		require.NoError(t, err, tc.text)
		require.Equal(t, tc.want, got.eval(&scope{request: tc.r}), tc.text)
	}
}

func TestUnknownVariable(t *testing.T) {
	for text, variable := range map[string]string{
		"a$nobody":     "$nobody",
		"$":            "$",
		"$host$":       "$",
		"${host":       "${host",
		"${}":          "${}",
		"$-":           "$-",
		"$geoip_city":  "$geoip_city",
		"$host${no_}x": "$no_",
	} {
		_, err := New(context.Background(), Config{Method: hash.New(text), Servers: []Server{{Addr: "127.0.0.1:1"}}})
		var unknown *VariableError
		require.ErrorAs(t, err, &unknown, text)
		require.Equal(t, VariableError{Text: text, Variable: variable}, *unknown)
	}
}

// A key costs little: nothing where the request has it as it is.
func TestVariableWithoutCopy(t *testing.T) {
	for _, text := range []string{"$arg_u", "$request_method", "$cookie_c", "$http_x", "$args", "k"} {
		compiled, err := compile(text, nil)
		require.NoError(t, err)
		r := made(t, "http://backend/?q=1&u=42")
		r.Header.Set("Cookie", "a=b; c=d")
		r.Header.Set("X", "y")
		s := &scope{request: r}
		require.Zero(t, testing.AllocsPerRun(100, func() { compiled.eval(s) }), text)
	}
}

// Nothing that a client sends makes a look-up panic.
func FuzzVariables(f *testing.F) {
	f.Add("a=1; b", "x=1&y", "1.2.3.4:5", "h:1", "/a/../b")
	f.Add("===;;,, a", "&&=&", "[::1", "[", "//")
	f.Fuzz(func(t *testing.T, cookie, query, remote, host, path string) {
		r := made(t, "http://x/")
		r.Header["Cookie"] = []string{cookie}
		r.URL.RawQuery, r.RemoteAddr, r.Host, r.URL.Path = query, remote, host, path
		for name, v := range variables {
			if strings.Contains(name, "\x00") || v == nil {
				t.Fatal(name)
			}
			v(&scope{request: r})
		}
		for _, p := range prefixes {
			p.make("a")(&scope{request: r})
			p.make("")(&scope{request: r})
		}
	})
}

// Which source of an input goes before which, field by field.
func TestInputPrecedence(t *testing.T) {
	addr := netip.MustParseAddr
	own := func(r *http.Request) Input {
		return Input{Key: r.Header.Get("K"), Client: addr("10.0.0.3"), Hint: "own"}
	}
	for _, tc := range []struct {
		name    string
		own     func(*http.Request) Input
		context Input
		header  string
		want    Input
	}{
		{name: "the variables", want: Input{Key: "42", Client: addr("192.0.2.7")}},
		{name: "Config.Input before them", own: own, header: "k", want: Input{Key: "k", Client: addr("10.0.0.3"), Hint: "own"}},
		{name: "what it leaves empty is theirs", own: own, want: Input{Key: "42", Client: addr("10.0.0.3"), Hint: "own"}},
		{name: "WithInput before all", own: own, header: "k", context: Input{Key: "c", Client: addr("10.0.0.2"), Hint: "ctx"},
			want: Input{Key: "c", Client: addr("10.0.0.2"), Hint: "ctx"}},
		{name: "field by field", own: own, header: "k", context: Input{Hint: "ctx"}, want: Input{Key: "k", Client: addr("10.0.0.3"), Hint: "ctx"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, err := newInputs(&Config{Method: hash.New("$arg_u"), Input: tc.own})
			require.NoError(t, err)
			in.client = true
			r := received(t, "GET /?u=42 HTTP/1.1\nHost: x\nK: "+tc.header)
			ctx := WithLog(WithInput(context.Background(), tc.context), new(AttemptLog))
			got, with := Input{}.ofContext(ctx)
			require.NotNil(t, with.log)
			require.Equal(t, tc.want, in.fill(got, r))
		})
	}
}

// ip_hash takes the address that a server has read the request from, and is an error
// without one.
func TestClientOfRequest(t *testing.T) {
	up, err := New(context.Background(), Config{Name: "x", Method: iphash.New(), Servers: []Server{{Addr: "127.0.0.1:1"}}})
	require.NoError(t, err)
	r := received(t, "GET / HTTP/1.1\nHost: x")
	require.Equal(t, addrOf("192.0.2.7"), up.inputs.fill(Input{}, r).Client)
	for _, remote := range []string{"", "@", "unix:", "nonsense"} {
		r := made(t, "http://x/")
		r.RemoteAddr = remote
		_, err := up.RoundTripper(nil).RoundTrip(r)
		var missing *InputError
		require.ErrorAs(t, err, &missing, remote)
		require.Equal(t, 502, StatusCode(err))
	}
}

func addrOf(s string) netip.Addr { return netip.MustParseAddr(s) }
