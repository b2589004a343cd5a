//go:build unix

package nginx

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/port"
)

// What docs/parity.md says of nginx in "What differs" that no recording has.
func TestWhatIsSaidOfNginx(t *testing.T) {
	// run runs nginx before one backend.
	run := func(t *testing.T, rules string, backend http.HandlerFunc) (nginx http.RoundTripper, addr string) {
		s := httptest.NewServer(backend)
		t.Cleanup(s.Close)
		addr, dir := s.Listener.Addr().String(), tempDir(t)
		return over(t, start(t, dir, configure(t, "http", settings{Dir: dir, Block: "server " + addr + ";", Rules: rules}))), addr
	}
	get := func(t *testing.T, nginx http.RoundTripper, method, path string, body io.Reader) (*http.Response, string, error) {
		r, err := http.NewRequest(method, "http://client.example"+path, body)
		require.NoError(t, err)
		resp, err := nginx.RoundTrip(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return resp, string(text), err
	}

	t.Run("a name without resolve must be found at the start", func(t *testing.T) {
		dir := tempDir(t)
		conf := filepath.Join(dir, "nginx.conf")
		text := configure(t, "http", settings{Dir: dir, Block: "server 127.0.0.1:1; server no-such-host.invalid;"})
		require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
		said, err := exec.Command(binary(t), "-t", "-c", conf, "-p", dir, "-e", filepath.Join(dir, "error.log")).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(said), `host not found in upstream "no-such-host.invalid"`)
	})

	t.Run("of a Location the name in proxy_pass is turned back, and the peer's address is not", func(t *testing.T) {
		nginx, addr := run(t, "", func(w http.ResponseWriter, r *http.Request) {
			host := "backend"
			if r.URL.Path == "/address" {
				host = r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
			}
			http.Redirect(w, r, "http://"+host+"/there", http.StatusFound)
		})
		resp, _, _ := get(t, nginx, "GET", "/name", nil)
		require.Equal(t, "http://client.example/there", resp.Header.Get("Location"))
		resp, _, _ = get(t, nginx, "GET", "/address", nil)
		require.Equal(t, "http://"+addr+"/there", resp.Header.Get("Location"))
	})

	t.Run("proxy_read_timeout is between two reads of a body", func(t *testing.T) {
		nginx, _ := run(t, "proxy_read_timeout 1s;", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			for range 5 {
				io.WriteString(w, "x")
				http.NewResponseController(w).Flush()
				if r.URL.Path == "/stall" {
					<-r.Context().Done()
				}
				time.Sleep(300 * time.Millisecond)
			}
		})
		_, body, err := get(t, nginx, "GET", "/slow", nil)
		require.NoError(t, err, "a second and a half in all, but never a second between two reads")
		require.Equal(t, "xxxxx", body)
		resp, body, err := get(t, nginx, "GET", "/stall", nil)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "x", body)
	})

	t.Run("bodies of up to 1 MiB are taken", func(t *testing.T) {
		nginx, _ := run(t, "", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		for size, want := range map[int]int{1 << 20: http.StatusOK, 1<<20 + 1: http.StatusRequestEntityTooLarge} {
			resp, _, _ := get(t, nginx, "POST", "/", bytes.NewReader(make([]byte, size)))
			require.Equal(t, want, resp.StatusCode, size)
		}
	})

	t.Run("a listener on [::] takes no IPv4, unless it is told to, and maps it then", func(t *testing.T) {
		l, err := net.Listen("tcp6", "[::1]:0")
		if err != nil {
			t.Skip("no IPv6 here: ", err)
		}
		l.Close()
		for _, option := range []string{"", " ipv6only=off"} {
			at, err := port.New()
			require.NoError(t, err)
			t.Cleanup(at.Close)
			dir := tempDir(t)
			start(t, dir, configure(t, "http", settings{Dir: dir, Block: "server 127.0.0.1:1;",
				Rules: fmt.Sprintf("} } server { listen [::]:%d%s; location / { return 200 $remote_addr;", at.Number(), option)}))
			resp, err := http.Get("http://" + at.Addr() + "/")
			if option == "" {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			require.Equal(t, "::ffff:127.0.0.1", string(body))
		}
	})

	t.Run("a reload forgets all state", func(t *testing.T) {
		dir := tempDir(t)
		b := startBackends(t, "a -b c", func(_ string, l net.Listener) { http.Serve(l, http.NotFoundHandler()) })
		text := configure(t, "http", settings{Dir: dir, Block: "zone z 64k;" + b.lines("server a weight=5; server b fail_timeout=1h; server c;")})
		text = strings.Replace(text, "master_process off;", "", 1) // a process without workers cannot reload
		nginx := over(t, start(t, dir, text))
		asked := func() (all string) {
			for range 3 {
				resp, _, _ := get(t, nginx, "GET", "/", nil)
				all += b.names(resp.Header.Get("X-Asked")) + "; "
			}
			return all
		}
		require.Equal(t, "a; a; b, a; ", asked())
		require.NotContains(t, asked(), "b", "it is out")
		reload := exec.Command(binary(t), "-s", "reload", "-c", filepath.Join(dir, "nginx.conf"), "-p", dir, "-e", filepath.Join(dir, "error.log"))
		require.NoError(t, reload.Run())
		require.Eventually(t, func() bool { return strings.Contains(asked(), "b") }, 20*time.Second, 100*time.Millisecond)
	})
}

// over is HTTP to nginx.
func over(t *testing.T, dial dialer) http.RoundTripper {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}
