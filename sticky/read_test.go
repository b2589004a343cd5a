package sticky_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/cookie"
	"github.com/trunklb/trunk/sticky"
)

// hint is what a binding makes of a Cookie header, which package cookie reads.
func hint(t testing.TB, c sticky.Cookie, header string) string {
	t.Helper()
	b, err := sticky.New(c, nil)
	require.NoError(t, err)
	sid, err := b.Hint(context.Background(), func(text string) string {
		require.Equal(t, "$cookie_"+c.Name, text)
		return cookie.Find([]string{header}, c.Name)
	})
	require.NoError(t, err)
	return sid
}

// TestHostileCookies says that what no peer can be meant by is no hint.
func TestHostileCookies(t *testing.T) {
	secrets := [][]byte{bytes.Repeat([]byte{1}, 32)}
	long := strings.Repeat("a", 33)
	tests := []struct{ name, header string }{
		{"longer than any sid", "srv=" + long},
		{"a megabyte", "srv=" + strings.Repeat("a", 1<<20)},
		{"behind a megabyte of others", strings.Repeat("a=b; ", 200_000) + "srv=a"},
		{"half a name", "sr"},
		{"only separators", strings.Repeat(";,", 1<<16)},
		{"only names", strings.Repeat("srv", 1<<16)},
		{"another upstream's", "srv2=a; xsrv=b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Empty(t, hint(t, sticky.Cookie{Name: "srv"}, test.header))
			require.Empty(t, hint(t, sticky.Cookie{Name: "srv", Secrets: secrets}, test.header))
		})
	}
	require.Equal(t, long[:32], hint(t, sticky.Cookie{Name: "srv"}, "srv="+long[:32]))
}

// FuzzCookie reads any header, with signatures and without: what is accepted is
// what was sent, and only what was signed.
func FuzzCookie(f *testing.F) {
	plain := sticky.Cookie{Name: "srv"}
	signed := sticky.Cookie{Name: "srv", Secrets: [][]byte{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 16)}}
	b, err := sticky.New(signed, nil)
	require.NoError(f, err)
	for _, header := range []string{
		"", "srv=a", "a=b; srv=" + strings.Repeat("f", 32), "srv=\x00\xff", b.SetCookie("r1", nil),
		"srv=nTePBC3IVZW2V6X3H\nYI7FnIx", // base64 passes over line breaks
		b.SetCookie(strings.Repeat("e", 32), nil) + "; srv=x", "srv;srv=a,b", "SRV = \"a\"",
	} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if sid := hint(t, plain, header); sid != "" {
			require.LessOrEqual(t, len(sid), 32)
			require.Contains(t, header, sid)
			require.NotContains(t, sid, ";")
		}
		if sid := hint(t, signed, header); sid != "" {
			old := sticky.Cookie{Name: "srv", Secrets: signed.Secrets[1:]}
			inOld, err := sticky.New(old, nil)
			require.NoError(t, err)
			_, first, _ := strings.Cut(b.SetCookie(sid, nil), "=")
			_, second, _ := strings.Cut(inOld.SetCookie(sid, nil), "=")
			require.True(t, strings.Contains(header, first) || strings.Contains(header, second), "not signed: %q", sid)
		}
		// A header that was read once is read the same within a longer one.
		require.Equal(t, "b", hint(t, plain, "srv=b; "+header))
	})
}
