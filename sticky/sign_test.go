package sticky_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/sticky"
)

var (
	oldSecret = bytes.Repeat([]byte("o"), 32)
	newSecret = bytes.Repeat([]byte("n"), 32)
)

// signedValue is what a cookie srv carries for a sid.
func signedValue(t *testing.T, sid string, secrets ...[]byte) string {
	t.Helper()
	b, err := sticky.New(sticky.Cookie{Name: "srv", Secrets: secrets}, nil)
	require.NoError(t, err)
	_, value, _ := strings.Cut(b.SetCookie(sid, nil), "=")
	return value
}

// TestSignedForm gives the form as the documentation describes it.
func TestSignedForm(t *testing.T) {
	mac := hmac.New(sha256.New, newSecret)
	mac.Write([]byte("trunk sticky cookie\x00srv\x00r1"))
	want := base64.RawURLEncoding.EncodeToString(append(mac.Sum(nil)[:16], "r1"...))
	require.Equal(t, want, signedValue(t, "r1", newSecret))
}

// TestSignedIsCookieSafe says that signed, any sid comes back from a client that keeps to the
// standard; as nginx writes them, not all do.
func TestSignedIsCookieSafe(t *testing.T) {
	for _, sid := range []string{"r1", "ü", "a;b", `"`, " ", "\x00\xff", strings.Repeat("f", 32)} {
		value := signedValue(t, sid, newSecret)
		require.LessOrEqual(t, len(value), 64)
		back, err := http.ParseCookie("srv=" + value)
		require.NoError(t, err)
		require.Equal(t, sid, hint(t, sticky.Cookie{Name: "srv", Secrets: [][]byte{newSecret}}, "srv="+back[0].Value))
	}
}

func TestSecretsRotate(t *testing.T) {
	only := func(secrets ...[]byte) sticky.Cookie { return sticky.Cookie{Name: "srv", Secrets: secrets} }
	old := "srv=" + signedValue(t, "r1", oldSecret)
	require.Equal(t, "r1", hint(t, only(oldSecret), old))
	require.Equal(t, "r1", hint(t, only(newSecret, oldSecret), old), "while both are known")
	require.Empty(t, hint(t, only(newSecret), old), "when the old one is gone")
	require.Equal(t, signedValue(t, "r1", newSecret), signedValue(t, "r1", newSecret, oldSecret), "the first signs")
}

// TestForgedCookies says that no change of a signed cookie is accepted, nor one
// that was made for another name.
func TestForgedCookies(t *testing.T) {
	c := sticky.Cookie{Name: "srv", Secrets: [][]byte{newSecret, oldSecret}}
	value := signedValue(t, "r1", newSecret)
	require.Equal(t, "r1", hint(t, c, "srv="+value))
	for i := range value {
		for _, char := range []byte("Aa0-_.=~ \x00\xff") {
			forged := value[:i] + string(char) + value[i+1:]
			if forged != value {
				require.Empty(t, hint(t, c, "srv="+forged), "%q", forged)
			}
		}
		require.Empty(t, hint(t, c, "srv="+value[:i]))
	}
	for _, forged := range []string{"r1", value + "A", value + "=", value + value, "AAAA" + value} {
		require.Empty(t, hint(t, c, "srv="+forged), "%q", forged)
	}
	require.Empty(t, hint(t, sticky.Cookie{Name: "other", Secrets: c.Secrets}, "other="+value))
}

func BenchmarkSigned(b *testing.B) {
	binding, err := sticky.New(sticky.Cookie{Name: "srv", Secrets: [][]byte{newSecret, oldSecret}}, nil)
	require.NoError(b, err)
	cookie := binding.SetCookie(strings.Repeat("f", 32), nil)
	values := func(string) string { return cookie }
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if sid, _ := binding.Hint(b.Context(), values); sid == "" {
				b.Fatal("not accepted")
			}
		}
	})
	b.Run("set", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			binding.SetCookie("r1", values)
		}
	})
}
