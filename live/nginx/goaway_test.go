//go:build unix

package nginx

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/port"
)

var _ = template.Must(configuration.New("h2").Parse(`{{template "main" .}}
http {
    access_log off;
    client_body_temp_path {{.Dir}}/client_body;
    proxy_temp_path {{.Dir}}/proxy;
    fastcgi_temp_path {{.Dir}}/fastcgi;
    uwsgi_temp_path {{.Dir}}/uwsgi;
    scgi_temp_path {{.Dir}}/scgi;
    keepalive_requests 200;
    server {
        {{.Block}}
        ssl_certificate {{.Dir}}/cert.pem;
        ssl_certificate_key {{.Dir}}/cert.pem;
        location / { return 200; }
    }
}
`))

// nginx ends each HTTP/2 connection by a graceful GOAWAY after 200 requests. A POST whose body
// cannot be sent again is lost there now and then, by net/http too: of trunk no more are
// lost than of net/http alone with one server, none with BufferBody, and no peer is blamed.
func TestGracefulGoAway(t *testing.T) {
	const posts, workers = 9600, 8
	roots, pair := selfSigned(t, "example.com")
	one, two := h2Server(t, pair), h2Server(t, pair)
	newBase := func() *http.Transport {
		tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}
		t.Cleanup(tr.CloseIdleConnections)
		return tr
	}
	// lose sends the POSTs, and returns how many were lost.
	lose := func(rt http.RoundTripper, url string) int {
		var next, lost atomic.Int64
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for next.Add(1) <= posts {
					// The type hides the reader's, so that net/http makes no GetBody.
					r, err := http.NewRequest("POST", url, struct{ io.Reader }{strings.NewReader("a body")})
					if err != nil {
						panic(err)
					}
					r.ContentLength = 6
					resp, err := rt.RoundTrip(r)
					if err != nil {
						lost.Add(1)
						continue
					}
					if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
						lost.Add(1)
					}
					resp.Body.Close()
				}
			})
		}
		all.Wait()
		return int(lost.Load())
	}
	plain := lose(newBase(), "https://"+one+"/")
	t.Logf("net/http, one server: %d of %d lost", plain, posts)

	for _, test := range []struct {
		name   string
		buffer int64
		proxy  bool
		most   int
	}{
		{"without a buffer", 0, false, plain},
		{"with BufferBody", 1 << 10, false, 0},
		{"with BufferBody, through ReverseProxy", 1 << 10, true, 0},
		{"without a buffer, through ReverseProxy", 0, true, plain},
	} {
		t.Run(test.name, func(t *testing.T) {
			up, err := balancer.New(context.Background(), balancer.Config{Name: "example.com",
				Servers: []balancer.Server{{Addr: one}, {Addr: two}}, Retry: balancer.Retry{BufferBody: test.buffer}})
			require.NoError(t, err)
			t.Cleanup(func() { up.Close() })
			rt, url := up.RoundTripper(newBase()), "https://example.com/"
			if test.proxy {
				proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: rt, ErrorLog: log.New(io.Discard, "", 0),
					Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "https", "example.com" }})
				t.Cleanup(proxy.Close)
				front := &http.Transport{MaxIdleConnsPerHost: workers}
				t.Cleanup(front.CloseIdleConnections)
				rt, url = front, proxy.URL
			}
			lost := lose(rt, url)
			t.Logf("%d of %d lost", lost, posts)
			require.LessOrEqual(t, lost, test.most)
			for _, p := range up.Snapshot().Peers {
				require.Zero(t, p.Failed, "%s is healthy", p.Server.Addr)
				require.NotZero(t, p.Gets, p.Server.Addr)
			}
		})
	}
}

// h2Server runs nginx with HTTP/2 over TLS, and returns its address.
func h2Server(t *testing.T, pair []byte) string {
	at, err := port.New()
	require.NoError(t, err)
	t.Cleanup(at.Close)
	dir := tempDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), pair, 0o600))
	start(t, dir, configure(t, "h2", settings{Dir: dir, Block: "listen " + at.Addr() + " ssl http2;"}))
	return at.Addr()
}

// selfSigned returns a certificate for a name, as what trusts it and as PEM with its key.
func selfSigned(t *testing.T, name string) (*x509.CertPool, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return pool, text
}
