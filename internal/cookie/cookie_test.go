package cookie_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/cookie"
)

// TestFindAsNginx gives what a real nginx finds in $cookie_srv.
func TestFindAsNginx(t *testing.T) {
	tests := []struct{ header, want string }{
		{"srv=a", "a"},
		{"SRV=a", "a"},
		{"SrV=x; srv=y", "x"},
		{"srv=a; srv=b", "a"},
		{"srv=; srv=b", ""},
		{"x=1; srv=2", "2"},
		{"x;srv=2", "2"},
		{"x=;srv=2", "2"},
		{";;srv=2", "2"},
		{"srvx=1; srv=2", "2"},
		{"xsrv=1", ""},
		{"x= srv=3", ""},
		{"x=1; srv = b ; y=2", "b "},
		{"srv =  z", "z"},
		{`srv="q"`, `"q"`},
		{"srv=a,b", "a,b"},
		{"srv==b", "=b"},
		{"srv; srv=b", ""}, // the bare name hides the next one
		{"x\tsrv=1;\tsrv=2", ""},
		{"srv=b\t;", "b\t"},
		{`x="srv=1"; srv=2`, "2"},
		{"srv", ""},
		{"srv ", ""},
		{"", ""},
		// A comma ends no cookie.
		{"x=1,srv=b", ""},
		{"prefs=1,srv=b; srv=c", "c"},
		{"a=b, srv=c; srv=a", "a"},
		{",srv=b", ""},
		{"srv,srv=b; srv=c", "c"},
		// Case is folded in ASCII only.
		{"\u017Frv=a; srv=b", "b"},
	}
	for _, test := range tests {
		require.Equal(t, test.want, cookie.Find([]string{test.header}, "srv"), "Cookie: %s", test.header)
	}
}

// Each line is read for itself: a bare name at the end of one hides nothing in the next.
func TestLineByLine(t *testing.T) {
	require.Equal(t, "b", cookie.Find([]string{"srv", "srv=b"}, "srv"))
	require.Equal(t, "", cookie.Find([]string{"srv; srv=b"}, "srv"))
	require.Equal(t, "a", cookie.Find([]string{"x=1", "srv=a", "srv=b"}, "srv"))
	require.Equal(t, "", cookie.Find([]string{"srv=", "srv=b"}, "srv"), "an empty one is the first one")
	require.Equal(t, "", cookie.Find(nil, "srv"))
}

func TestStrangeNames(t *testing.T) {
	require.Equal(t, "1", cookie.Find([]string{"\u212Aelvin=0; KELVIN=1"}, "kelvin"))
	require.Equal(t, "1", cookie.Find([]string{"a=1; b=2; srv;x=1"}, "srv;x"))
	require.Equal(t, "1", cookie.Find([]string{"my=0; my srv=1"}, "my srv"))
}

// What is beyond 32 KiB, of all lines together, is not read.
func TestTheHeaderIsBounded(t *testing.T) {
	fill := func(n int) string { return strings.Repeat(";", n) }
	require.Equal(t, "a", cookie.Find([]string{fill(cookie.MaxHeader-5) + "srv=a"}, "srv"))
	require.Equal(t, "", cookie.Find([]string{fill(cookie.MaxHeader-4) + "srv=a"}, "srv"))
	require.Equal(t, "", cookie.Find([]string{fill(cookie.MaxHeader), "srv=a"}, "srv"))
	half := fill(cookie.MaxHeader/2 - 5)
	require.Equal(t, "a", cookie.Find([]string{half, half, "srv=a"}, "srv"))
	require.Equal(t, "", cookie.Find([]string{fill(1 << 20), "srv=a"}, "srv"))
}

// literal reads a header one character at a time, as nginx's loop does.
func literal(lines []string, name string) string {
	for _, line := range lines {
		i := 0
		for i < len(line) {
			if i+len(name) <= len(line) && strings.ToLower(line[i:i+len(name)]) == name {
				for i += len(name); i < len(line) && line[i] == ' '; i++ {
				}
				if i < len(line) {
					i++
					if line[i-1] == '=' {
						for ; i < len(line) && line[i] == ' '; i++ {
						}
						value, _, _ := strings.Cut(line[i:], ";")
						return value
					}
				}
			}
			for i < len(line) {
				if i++; line[i-1] == ';' {
					break
				}
			}
			for i < len(line) && line[i] == ' ' {
				i++
			}
		}
	}
	return ""
}

func TestFindAgreesWithTheLiteralReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`([aA]|;| |=|,|x){0,12}`), 0, 3).Draw(t, "lines")
		name := rapid.SampledFrom([]string{"a", "aa", "ax"}).Draw(t, "name")
		require.Equal(t, literal(lines, name), cookie.Find(lines, name))
	})
}

func BenchmarkHostile(b *testing.B) {
	lines := []string{strings.Repeat(";", 1<<20)}
	for b.Loop() {
		cookie.Find(lines, "srv")
	}
}
