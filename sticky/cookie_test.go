package sticky_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/cookie"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// record is a Set-Cookie line of a real nginx: a line of testdata/cookies.jsonl.
type record struct {
	ID            string
	Directive     string
	Server        string
	Route         string
	SID           string
	Now           int64 // seconds
	Args          string
	RequestCookie string `json:"request_cookie"`
	SetCookie     any    `json:"set_cookie"` // a string, or an empty list
}

// TestCookieToTheByte holds SetCookie against every recorded line.
func TestCookieToTheByte(t *testing.T) {
	file, err := os.Open("testdata/cookies.jsonl")
	require.NoError(t, err)
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); n++ {
		var r record
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		t.Run(r.ID+" "+r.Directive, func(t *testing.T) {
			address := r.Server
			if !strings.Contains(address, ":") {
				address += ":80"
			}
			set, err := peer.NewSet([]peer.Server{{Addr: address, Route: r.Route}}, 0)
			require.NoError(t, err)
			require.Equal(t, r.SID, set.SID(peer.Primary, 0))

			b, err := sticky.New(directive(t, r.Directive), at(time.Duration(r.Now)*time.Second))
			require.NoError(t, err)
			want, _ := r.SetCookie.(string)
			require.Equal(t, want, b.SetCookie(r.SID, r.values))
		})
	}
	require.Equal(t, 87, n)
}

// at is a clock that stands.
func at(now time.Duration) *sticky.Options {
	return &sticky.Options{Clock: func() time.Duration { return now }}
}

// values knows nginx's variables $arg_x and $cookie_x.
func (r *record) values(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		if name, ok := strings.CutPrefix(name, "$cookie_"); ok {
			return cookie.Find([]string{r.RequestCookie}, name)
		}
		for arg := range strings.SplitSeq(r.Args, "&") {
			if n, value, _ := strings.Cut(arg, "="); "$arg_"+n == name {
				return value
			}
		}
		return ""
	})
}

var variable = regexp.MustCompile(`\$[a-z_]+`)

var word = regexp.MustCompile(`"[^"]*"|\S+`)

// directive reads nginx's sticky directive.
func directive(t *testing.T, line string) sticky.Sticky {
	words := word.FindAllString(line, -1)
	for i := range words {
		words[i] = strings.Trim(words[i], `"`)
	}
	require.Equal(t, "sticky", words[0])
	switch words[1] {
	case "route":
		return sticky.Route{Variables: words[2:]}
	case "learn":
		return sticky.Learn{Create: []string{"$upstream_cookie_s"}, Lookup: []string{"$cookie_s"}}
	}
	c := sticky.Cookie{Name: words[2]}
	for _, arg := range words[3:] {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "expires":
			c.Expires = life(t, value)
		case "domain":
			c.Domain = value
		case "path":
			c.Path = value
		case "samesite":
			c.SameSite = value
		case "httponly":
			c.HTTPOnly = true
		case "secure":
			c.Secure = true
		default:
			t.Fatalf("no such parameter: %s", arg)
		}
	}
	return c
}

var units = map[string]time.Duration{
	"y": 365 * 24 * time.Hour, "M": 30 * 24 * time.Hour, "d": 24 * time.Hour,
}

// life reads nginx's time.
func life(t *testing.T, text string) time.Duration {
	switch text {
	case "max":
		return sticky.MaxExpires
	case "0":
		return sticky.ExpiresAtOnce
	}
	if unit, ok := units[text[len(text)-1:]]; ok {
		return life(t, text[:len(text)-1]+"s") * (unit / time.Second)
	}
	if strings.Trim(text, "0123456789") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// TestCookieLivesFromItsAnswerOn says that a cookie which is set later expires later.
func TestCookieLivesFromItsAnswerOn(t *testing.T) {
	now := 1_700_000_000 * time.Second
	b, err := sticky.New(sticky.Cookie{Name: "srv", Expires: time.Hour},
		&sticky.Options{Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	require.Equal(t, "srv=a; expires=Tue, 14-Nov-23 23:13:20 GMT; max-age=3600", b.SetCookie("a", nil))
	now += time.Minute + 999*time.Millisecond
	require.Equal(t, "srv=a; expires=Tue, 14-Nov-23 23:14:20 GMT; max-age=3600", b.SetCookie("a", nil))
}

func TestCookieDomainCannotBreakTheLine(t *testing.T) {
	b, err := sticky.New(sticky.Cookie{Name: "srv", Domain: "$arg_d", SameSite: "$arg_d"}, nil)
	require.NoError(t, err)
	value := func(string) string { return "a\r\nSet-Cookie: admin=1" }
	require.Equal(t, "srv=a; samesite=strict", b.SetCookie("a", value))
}

// TestNoValues says that without a request, as for other protocols, variables
// are empty.
func TestNoValues(t *testing.T) {
	b, err := sticky.New(sticky.Cookie{Name: "srv", Domain: "$host", SameSite: "$arg_s", Path: "/"}, nil)
	require.NoError(t, err)
	require.Equal(t, "srv=a; path=/", b.SetCookie("a", nil))
	hint, err := b.Hint(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, hint)
}

func TestConfigIsRefused(t *testing.T) {
	short, long := make([]byte, sticky.MinSecret-1), make([]byte, sticky.MinSecret)
	some := []string{"$cookie_a"}
	tests := []struct {
		field  string
		config sticky.Sticky
	}{
		{"Name", sticky.Cookie{}},
		{"Name", sticky.Cookie{Name: "a\nb"}},
		{"Path", sticky.Cookie{Name: "a", Path: "/\r"}},
		{"Domain", sticky.Cookie{Name: "a", Domain: "a\x00"}},
		{"Expires", sticky.Cookie{Name: "a", Expires: -3}},
		{"Expires", sticky.Cookie{Name: "a", Expires: 1500 * time.Millisecond}},
		{"SameSite", sticky.Cookie{Name: "a", SameSite: "bad"}},
		{"Secrets[1]", sticky.Cookie{Name: "a", Secrets: [][]byte{long, short}}},
		{"Variables", sticky.Route{}},
		{"Create", sticky.Learn{Lookup: some}},
		{"Lookup", sticky.Learn{Create: some}},
		{"Timeout", sticky.Learn{Create: some, Lookup: some, Timeout: -1}},
		{"Timeout", sticky.Learn{Create: some, Lookup: some, Timeout: time.Microsecond}},
		{"ZoneSize", sticky.Learn{Create: some, Lookup: some, ZoneSize: -1}},
		{"Capacity", sticky.Learn{Create: some, Lookup: some, Capacity: -1}},
		{"Capacity", sticky.Learn{Create: some, Lookup: some, Capacity: sticky.MaxCapacity + 1}},
	}
	for _, test := range tests {
		_, err := sticky.New(test.config, nil)
		var refused *peer.ConfigError
		require.ErrorAs(t, err, &refused, "%+v", test.config)
		require.Equal(t, "Sticky."+test.field, refused.Field)
	}
}

// TestConfigIsCopied says that what the caller does with the configuration
// later has no effect.
func TestConfigIsCopied(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, sticky.MinSecret)
	c := sticky.Cookie{Name: "srv", Secrets: [][]byte{secret}}
	b, err := sticky.New(c, nil)
	require.NoError(t, err)
	before := b.SetCookie("a", nil)
	secret[0]++
	c.Secrets[0] = nil
	require.Equal(t, before, b.SetCookie("a", nil))
}

func TestPointersBindToo(t *testing.T) {
	b, err := sticky.New(&sticky.Cookie{Name: "srv"}, nil)
	require.NoError(t, err)
	require.Equal(t, "srv=a", b.SetCookie("a", nil))
}

func TestNothingBinds(t *testing.T) {
	b, err := sticky.New(nil, nil)
	require.NoError(t, err)
	ctx := context.Background()
	hint, err := b.Hint(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, hint)
	require.Empty(t, b.SetCookie("a", nil))
	require.Empty(t, b.Texts())
	require.NoError(t, b.Header(ctx, "a", nil))
	require.NoError(t, b.OK(ctx, "a", nil))
}

func TestTexts(t *testing.T) {
	tests := []struct {
		config sticky.Sticky
		want   []string
	}{
		{sticky.Cookie{Name: "$name", Path: "$uri", Domain: "x.test", SameSite: "lax"}, []string{"$cookie_$name"}},
		{sticky.Cookie{Name: "a", Domain: "$arg_d", SameSite: "$arg_s"}, []string{"$cookie_a", "$arg_d", "$arg_s"}},
		{sticky.Route{Variables: []string{"$cookie_r", "$arg_r"}}, []string{"$cookie_r", "$arg_r"}},
		{sticky.Learn{Create: []string{"$upstream_cookie_s"}, Lookup: []string{"$cookie_s", "$arg_s"}},
			[]string{"$upstream_cookie_s", "$cookie_s", "$arg_s"}},
	}
	for _, test := range tests {
		b, err := sticky.New(test.config, nil)
		require.NoError(t, err)
		require.Equal(t, test.want, b.Texts())
	}
}
