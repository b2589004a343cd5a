package conflex

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// wordsOf reads a text of simple directives.
func wordsOf(t *testing.T, text string) (all [][]string) {
	t.Helper()
	b := Parse(text)
	require.Nil(t, b.Syntax(), "%q: %v", text, b.Syntax())
	for _, d := range b.Directives {
		all = append(all, d.Words)
	}
	return all
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"spaces, tabs and line ends", "a\tb\r\n  c ;", []string{"a", "b", "c"}},
		{"a comment only where a word begins", "a b#c # d\n e;", []string{"a", "b#c", "e"}},
		{"a comment hides the end", "a # ; \n;", []string{"a"}},
		{"quotes", `a "b c" 'd"e' "";`, []string{"a", "b c", `d"e`, ""}},
		{"a quote within a word", `a b"c" d'e;`, []string{"a", `b"c"`, "d'e"}},
		{"the six escapes", `a "\"\'\\\t\r\n";`, []string{"a", "\"'\\\t\r\n"}},
		{"other escapes stay", `a b\ c "\x\$";`, []string{"a", `b\ c`, `\x\$`}},
		{"braces of variables", `a ${b}c $${d};`, []string{"a", "${b}c", "$${d}"}},
		{"braces in words", `a b}c "{}";`, []string{"a", "b}c", "{}"}},
		{"a bracket behind a quote", `a ("b") ;`, []string{"a", `("b")`}},
		{"a bracket behind a quoted word", `if "b") ;`, []string{"if", "b", ")"}},
		{"no other space", "a b\u00a0c\vd;", []string{"a", "b\u00a0c\vd"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, [][]string{c.want}, wordsOf(t, c.text))
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]struct {
		message string
		line    int
	}{
		";":                       {`unexpected ";"`, 1},
		"a;;":                     {`unexpected ";"`, 1},
		"{":                       {`unexpected "{"`, 1},
		"a {\n a; }\n}":           {`unexpected "}"`, 3},
		"a {\n b }":               {`unexpected "}"`, 2},
		"a {\n b;\n":              {`unexpected end of file, expecting "}"`, 3},
		"a\n b":                   {`unexpected end of file, expecting ";" or "}"`, 2},
		"a \"b\n;":                {`unexpected end of file, expecting ";" or "}"`, 2},
		`a "b"c;`:                 {`unexpected "c"`, 1},
		"a_by_lua_block { '}'":    {`unexpected end of file, expecting "}"`, 1},
		"a_by_lua_block { --[[ }": {`unexpected end of file, expecting "}"`, 1},
	} {
		t.Run(text, func(t *testing.T) {
			err := Parse(text).Syntax()
			require.NotNil(t, err)
			assert.Equal(t, want.message, err.Message)
			assert.Equal(t, want.line, err.Line)
		})
	}
}

// A word, its closing quote included, must fit nginx's buffer of 4096 bytes if
// more text follows; so must a comment. Each was tried on nginx itself.
func TestTooLongParameter(t *testing.T) {
	more := strings.Repeat(" ", 200)
	x := strings.Repeat("x", 5000)
	started := `too long parameter "xxxxxxxxxx..." started`
	for _, c := range []struct {
		name, text, want string
	}{
		{"bare, the longest", "a " + x[:4095] + ";" + more, ""},
		{"bare", "a " + x[:4096] + ";" + more, started},
		{"quoted, the longest", `a "` + x[:4094] + `";` + more, ""},
		{"quoted", `a "` + x[:4095] + `";` + more, started},
		{"quoted, the quote out of sight", `a "` + x[:4096] + `";` + more,
			`too long parameter, probably missing terminating """ character`},
		{"a comment, the longest", "#" + x[:4094] + "\n" + more, ""},
		{"a comment", "#" + x[:4095] + "\n" + more, `too long parameter "#xxxxxxxxx..." started`},
		{"a comment that ends the text", "#" + x[:4095], ""},
		{"several words", strings.Repeat(" "+x[:4000], 5) + ";", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Parse(c.text).Syntax()
			if c.want == "" {
				assert.Nil(t, err)
				return
			}
			require.NotNil(t, err)
			assert.Equal(t, c.want, err.Message)
		})
	}
}

func TestLines(t *testing.T) {
	b := Parse("a\n b\n;\nc {\n d;\n}\ne_by_lua_block {\n x = [[\n}\n]]\n}\nf;")
	require.Nil(t, b.Syntax())
	require.Len(t, b.Directives, 4)
	a, c, e, f := b.Directives[0], b.Directives[1], b.Directives[2], b.Directives[3]
	assert.Equal(t, []int{1, 3}, []int{a.Start, a.Line})
	assert.Equal(t, []int{4, 6}, []int{c.Line, c.Block.End})
	assert.Equal(t, "\n x = [[\n}\n]]\n", e.Lua)
	assert.Equal(t, 11, e.Block.End)
	assert.Equal(t, 12, f.Line)
}

func TestLuaBracesCountAsLuaReadsThem(t *testing.T) {
	for _, body := range []string{
		` x = "}" `, ` x = '\'}' `, ` x = { y = { } } `, " -- }\n ", " --[[ }\n} ]] ", " x = [==[ } ]] } ]==] ",
		" x = a[b[1]] ", " x = 1 - 2 ", " x = \"\\\\\" ",
	} {
		b := Parse("a_by_lua_block {" + body + "} b;")
		require.Nil(t, b.Syntax(), body)
		require.Len(t, b.Directives, 2, body)
		assert.Equal(t, body, b.Directives[0].Lua)
	}
}

func TestQuoteReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.String(),
			rapid.StringOf(rapid.SampledFrom([]rune("a ;{}\"'\\$#ntr)\n")))).Draw(t, "word")
		b := Parse("a " + Quote(word) + ";")
		require.Nil(t, b.Syntax())
		require.Equal(t, []string{"a", word}, b.Directives[0].Words)
	})
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "10": 10, "10s": 10, "1m30s": 90, "1h30": 3630, "1h 30m": 5400, "1d": 86400, "1w": 604800,
		"1M": 30 * 86400, "1y": 365 * 86400, "1y1M1w1d1h1m1s": (365+30+7+1)*86400 + 3661,
		"10 ": 10, " 10": 10, "9223372036854775807": 1<<63 - 1,
	} {
		n, ok := Seconds(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, n, text)
	}
	for _, text := range []string{"", " ", "s", "1s1s", "1m1h", "1.5s", "10sec", "30S", "-1", "500ms", "1s500ms",
		"9223372036854775808", "300000000000y", "1s9223372036854775807"} {
		_, ok := Seconds(text)
		assert.False(t, ok, text)
	}
	n, ok := Millis("1h500ms")
	assert.True(t, ok)
	assert.EqualValues(t, 3600500, n)
	for _, text := range []string{"1y", "1M", "1ms1s", "9223372036854775807"} {
		_, ok := Millis(text)
		assert.False(t, ok, text)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "64k": 65536, "1M": 1 << 20, "007": 7} {
		n, ok := Size(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "k", "64kb", "-1", "1g", "9223372036854775807k"} {
		_, ok := Size(text)
		assert.False(t, ok, text)
	}
}

// The odd ones were tried on nginx itself.
func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:80", "010.0.0.1:080": "10.0.0.1:80", "1..2.3": "1.0.2.3:80", "10.1:81": "10.0.0.1:81",
		"0x7f.1": "127.0.0.1:80", "256": "0.0.1.0:80", "255.255.255.255": "255.255.255.255:80", "10.0.0.1\x00": "10.0.0.1:80",
		"app.example": "app.example:80", "10.0.0.256": "10.0.0.256:80", "1_0.1": "1_0.1:80", "0b1": "0b1:80",
		"[2001:DB8::1]:81": "[2001:db8::1]:81", "[::ffff:10.0.0.1]": "[::ffff:10.0.0.1]:80", "[::1.2.3.4]": "[::1.2.3.4]:80",
		"[:1:2:3:4:5:6:7:8]": "[1:2:3:4:5:6:7:8]:80", "[::1:]": "[::0.1.0.0]:80",
		"unix:/x:80": "unix:/x:80", "UNIX:x": "UNIX:x",
	} {
		a, refusal := ParseAddr(text, 80)
		assert.Empty(t, refusal, text)
		assert.Equal(t, want, a.String(), text)
	}
	for text, want := range map[string]string{
		"": "no host", ":80": "no host", "a:": "invalid port", "a:0": "invalid port", "a:65536": "invalid port",
		"a:1:2": "invalid port", "::1": "invalid port", "a/b:x": "invalid host", "a?b": "invalid host", "[::1": "invalid host",
		"[::1]80": "invalid host", "[]": "no host", "[x]": "invalid IPv6 address", "[fe80::1%eth0]": "invalid IPv6 address",
		"[1:2:3:4:5:6:7::]": "invalid IPv6 address", "[10.0.0.1]": "invalid IPv6 address",
		"unix:": "no path in the unix domain socket", "unix:" + strings.Repeat("x", 108): "too long path in the unix domain socket",
	} {
		_, refusal := ParseAddr(text, 80)
		assert.Equal(t, want, refusal, text)
	}
	assert.Equal(t, "[::1]:80", FormatAddr(netip.MustParseAddr("::1"), 80))
	assert.Equal(t, "[::]:80", FormatAddr(netip.MustParseAddr("::"), 80))
}

func TestVariables(t *testing.T) {
	names, err := Variables("$host-${Arg_X}y$1$cookie_a.b")
	require.NoError(t, err)
	assert.Equal(t, []string{"host", "arg_x", "cookie_a"}, names)
	for text, want := range map[string]string{
		"$": "invalid variable name", "a$-": "invalid variable name", "${": "invalid variable name", "${}": "invalid variable name",
		"${host": `the closing bracket in "host" variable is missing`, "${a-b}": `the closing bracket in "a" variable is missing`,
	} {
		_, err := Variables(text)
		assert.EqualError(t, err, want, text)
	}
}

func TestDepthIsBounded(t *testing.T) {
	b := Parse(strings.Repeat("a {", 1_000_000))
	for n := 0; b.Err == nil; n++ {
		if n > 2000 || len(b.Directives) != 1 {
			t.Fatal("no error on the way down")
		}
		b = b.Directives[0].Block
	}
	if b.Err.Message != "blocks are nested more than 1000 deep" {
		t.Fatal(b.Err)
	}
}
