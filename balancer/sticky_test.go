package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/sticky"
)

// farm is some backends behind one upstream. Each answers with its name, "a" and
// so on, which is its route too.
type farm struct {
	t     *testing.T
	up    *balancer.Upstream
	serve func(name string, w http.ResponseWriter, r *http.Request)
}

const moment = 1_700_000_000 * time.Second

func newFarm(t *testing.T, n int, c balancer.Config) *farm {
	f := &farm{t: t, serve: func(string, http.ResponseWriter, *http.Request) {}}
	for i := range n {
		name := string(rune('a' + i))
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.serve(name, w, r)
			fmt.Fprint(w, name)
		}))
		t.Cleanup(s.Close)
		c.Servers = append(c.Servers, balancer.Server{Addr: s.Listener.Addr().String(), Route: name, MaxFails: balancer.NoMaxFails})
	}
	c.Name = "backend"
	c.Clock = func() time.Duration { return moment }
	var err error
	f.up, err = balancer.New(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() { f.up.Close() })
	return f
}

// client is a client with a cookie jar.
func (f *farm) client() *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(f.t, err)
	return &http.Client{Transport: f.up.RoundTripper(nil), Jar: jar}
}

// get is a request with those cookies; it returns who answered, and the cookies that were set.
func (f *farm) get(c *http.Client, url string, cookies ...string) (string, []string) {
	f.t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(f.t, err)
	for _, cookie := range cookies {
		r.Header.Add("Cookie", cookie)
	}
	resp, err := c.Do(r)
	require.NoError(f.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	return string(body), resp.Header["Set-Cookie"]
}

// gets is n requests, and who answered.
func (f *farm) gets(n int, c *http.Client, cookies ...string) string {
	f.t.Helper()
	var names []string
	for range n {
		name, _ := f.get(c, "http://backend/", cookies...)
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestJarIsSticky says that clients with a cookie jar stay with the peer that
// they came to first, whatever others do.
func TestJarIsSticky(t *testing.T) {
	configs := map[string]balancer.Config{
		"round robin": {},
		"least_conn":  {Method: leastconn.New()},
		"least_time":  {Method: leasttime.Method{Mode: leasttime.Header, Inflight: true}},
	}
	for name, c := range configs {
		for _, secrets := range [][][]byte{nil, {[]byte("0123456789abcdef")}} {
			t.Run(fmt.Sprintf("%s, %d secrets", name, len(secrets)), func(t *testing.T) {
				c.Sticky = sticky.Cookie{Name: "srv", Secrets: secrets}
				f := newFarm(t, 3, c)
				clients := []*http.Client{f.client(), f.client(), f.client()}
				var first []string
				for _, client := range clients {
					first = append(first, f.gets(1, client))
				}
				require.ElementsMatch(t, []string{"a", "b", "c"}, first)
				for range 3 {
					for i, client := range clients {
						require.Equal(t, first[i], f.gets(1, client))
					}
				}
			})
		}
	}
}

// TestSetCookieIsAdded says what the client gets: the backend's cookies, and behind
// them the upstream's own, renewed with every answer.
func TestSetCookieIsAdded(t *testing.T) {
	f := newFarm(t, 1, balancer.Config{Sticky: sticky.Cookie{Name: "srv", Expires: time.Hour, Path: "/", HTTPOnly: true}})
	var got []string
	f.serve = func(_ string, w http.ResponseWriter, r *http.Request) {
		got = r.Header["Cookie"]
		w.Header().Add("Set-Cookie", "theme=dark")
		w.Header().Add("Set-Cookie", "srv=mine")
	}
	for range 2 {
		_, set := f.get(&http.Client{Transport: f.up.RoundTripper(nil)}, "http://backend/", "x=1; srv=a")
		require.Equal(t, []string{"theme=dark", "srv=mine",
			"srv=a; expires=Tue, 14-Nov-23 23:13:20 GMT; max-age=3600; httponly; path=/"}, set)
		require.Equal(t, []string{"x=1; srv=a"}, got, "the request is sent on as it came")
	}
}

// TestStrangersAreNotTouched says that requests to other hosts get no cookie.
func TestStrangersAreNotTouched(t *testing.T) {
	f := newFarm(t, 1, balancer.Config{Sticky: sticky.Cookie{Name: "srv"}})
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	_, set := f.get(&http.Client{Transport: f.up.RoundTripper(nil)}, other.URL)
	require.Empty(t, set)
}

func TestHostileCookiesAreANormalPick(t *testing.T) {
	f := newFarm(t, 2, balancer.Config{Sticky: sticky.Cookie{Name: "srv", Secrets: [][]byte{[]byte("0123456789abcdef")}}})
	client := &http.Client{Transport: f.up.RoundTripper(nil)}
	for _, cookie := range []string{"srv=a", "srv=" + strings.Repeat("x", 10_000), strings.Repeat("a=b; ", 5000), "srv=\xff\xfe", "; ;=;srv"} {
		require.Equal(t, "a b", f.gets(2, client, cookie))
	}
}

// TestBrowserIsSticky is the same behind httputil.ReverseProxy, where the
// browser has the jar.
func TestBrowserIsSticky(t *testing.T) {
	f := newFarm(t, 3, balancer.Config{Sticky: sticky.Cookie{Name: "srv"}})
	proxy := &httputil.ReverseProxy{
		Transport: f.up.RoundTripper(nil),
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "backend"}) },
	}
	front := httptest.NewServer(proxy)
	defer front.Close()
	for range 2 {
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		browser := &http.Client{Jar: jar}
		first, _ := f.get(browser, front.URL)
		for range 5 {
			name, _ := f.get(browser, front.URL)
			require.Equal(t, first, name)
		}
	}
}

// TestCookieMovesWithTheRequest says that the cookie names the peer that has answered
// in the end.
func TestCookieMovesWithTheRequest(t *testing.T) {
	f := newFarm(t, 2, balancer.Config{Sticky: sticky.Cookie{Name: "srv"}, Retry: balancer.Retry{On: balancer.KindHTTP503}})
	f.serve = func(name string, w http.ResponseWriter, _ *http.Request) {
		if name == "a" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	name, set := f.get(&http.Client{Transport: f.up.RoundTripper(nil)}, "http://backend/", "srv=a")
	require.Equal(t, "b", name)
	require.Equal(t, []string{"srv=b"}, set)
}

func TestRouteOfTheRequest(t *testing.T) {
	f := newFarm(t, 3, balancer.Config{Sticky: sticky.Route{
		Variables: []string{"$arg_route", "$http_x_route"},
		Func: func(v sticky.Values) string {
			_, route, _ := strings.Cut(v("$cookie_jsessionid"), ".")
			return route + v("$nobody_knows") // a variable that there is not is empty
		},
	}})
	client := &http.Client{Transport: f.up.RoundTripper(nil)}
	for range 3 {
		name, set := f.get(client, "http://backend/?x=1&route=c")
		require.Equal(t, "c", name)
		require.Empty(t, set)
		name, _ = f.get(client, "http://backend/", "JSESSIONID=C0FFEE.b")
		require.Equal(t, "b", name)
	}
}

// TestInputGoesFirst says that a hint of the caller's own is not overruled by a cookie.
func TestInputGoesFirst(t *testing.T) {
	f := newFarm(t, 3, balancer.Config{Sticky: sticky.Cookie{Name: "srv"}})
	r, err := http.NewRequestWithContext(
		balancer.WithInput(context.Background(), balancer.Input{Hint: "c"}), http.MethodGet, "http://backend/", nil)
	require.NoError(t, err)
	r.Header.Set("Cookie", "srv=b")
	resp, err := f.up.RoundTripper(nil).RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, []string{"srv=c"}, resp.Header["Set-Cookie"])
}

// TestStartTakesAHint is for other protocols: the caller remembers Peer().SID.
func TestStartTakesAHint(t *testing.T) {
	f := newFarm(t, 3, balancer.Config{Sticky: sticky.Cookie{Name: "srv"}})
	sid := ""
	for range 4 {
		try := f.up.Start(context.Background(), balancer.Input{Hint: sid})
		require.True(t, try.Next())
		if sid != "" {
			require.Equal(t, sid, try.Peer().SID)
		}
		sid = try.Peer().SID
		try.Done(nil)
		f.gets(1, &http.Client{Transport: f.up.RoundTripper(nil)})
	}
}

// TestSessionsAreLearned says that the session which a backend creates stays
// with it.
func TestSessionsAreLearned(t *testing.T) {
	for _, header := range []bool{false, true} {
		t.Run(fmt.Sprintf("header %v", header), func(t *testing.T) {
			f := newFarm(t, 3, balancer.Config{Sticky: sticky.Learn{
				Create: []string{"$upstream_cookie_session", "$upstream_http_x_session"}, Lookup: []string{"$cookie_session"}, Header: header,
			}})
			f.serve = func(name string, w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/login" {
					w.Header().Add("Set-Cookie", "theme=dark")
					w.Header().Add("Set-Cookie", "Session=of-"+name+"; Path=/")
				}
			}
			client := f.client()
			first, set := f.get(client, "http://backend/login")
			require.Len(t, set, 2)
			require.Equal(t, strings.TrimSpace(strings.Repeat(first+" ", 5)), f.gets(5, client))
			require.NotEqual(t, strings.Repeat(first, 3), strings.ReplaceAll(f.gets(3, &http.Client{Transport: f.up.RoundTripper(nil)}), " ", ""))
		})
	}
}

// TestLearnedAtTheEnd says that a session is learned when the answer was read,
// even if the request's context has ended by then, and that what failed is not.
func TestLearnedAtTheEnd(t *testing.T) {
	table := &watchedTable{}
	f := newFarm(t, 2, balancer.Config{Sticky: sticky.Learn{
		Create: []string{"$upstream_http_x_session"}, Lookup: []string{"$cookie_session"}, Table: table,
	}})
	f.serve = func(name string, w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Session", "s-"+name) }
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://backend/", nil)
	require.NoError(t, err)
	resp, err := f.up.RoundTripper(nil).RoundTrip(r)
	require.NoError(t, err)
	require.Empty(t, table.stored)
	cancel()
	require.NoError(t, resp.Body.Close())
	require.Equal(t, []string{"a"}, table.stored)
	require.NoError(t, table.err)
}

// watchedTable notes what is stored, and is out of reach else.
type watchedTable struct {
	stored []string
	err    error
}

func (*watchedTable) Lookup(context.Context, sticky.ID) (string, error) {
	return "b", errors.New("out of reach")
}

func (w *watchedTable) Store(ctx context.Context, _ sticky.ID, sid string, _ time.Duration) error {
	w.stored, w.err = append(w.stored, sid), ctx.Err()
	return w.err
}

func (w *watchedTable) Renew(context.Context, sticky.ID, string, time.Duration) error { return nil }

// TestTableOutOfReach says that requests go on without a table.
func TestTableOutOfReach(t *testing.T) {
	f := newFarm(t, 2, balancer.Config{Sticky: sticky.Learn{
		Create: []string{"$upstream_cookie_s"}, Lookup: []string{"$cookie_s"}, Table: &watchedTable{},
	}})
	require.Equal(t, "a b a b", f.gets(4, &http.Client{Transport: f.up.RoundTripper(nil)}, "s=1"))
}

func TestStickyIsRefused(t *testing.T) {
	servers := []balancer.Server{{Addr: "10.0.0.1:80"}}
	_, err := balancer.New(context.Background(), balancer.Config{Servers: servers, Sticky: sticky.Cookie{}})
	var refused *balancer.ConfigError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "Sticky.Name", refused.Field)
	_, err = balancer.New(context.Background(), balancer.Config{Servers: servers, Sticky: sticky.Route{Variables: []string{"$nobody"}}})
	var unknown *balancer.VariableError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "$nobody", unknown.Variable)
}

// TestStickyOverIPHash says that the method beneath still gets what it needs.
func TestStickyOverIPHash(t *testing.T) {
	up, err := balancer.New(context.Background(), balancer.Config{
		Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}},
		Method:  iphash.New(), Sticky: sticky.Cookie{Name: "srv"},
	})
	require.NoError(t, err)
	try := up.Start(context.Background(), balancer.Input{})
	require.False(t, try.Next())
	var input *balancer.InputError
	require.ErrorAs(t, try.Err(), &input)
}
