//go:build unix

package nginx

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
)

// configuration is nginx's, and trunk's: the whole text is given to both. It
// listens on a unix socket, so that no port has to be free.
var configuration = template.Must(template.New("").Parse(`
daemon off;
master_process off;
worker_processes 1;
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path {{.Dir}}/client_body;
    proxy_temp_path {{.Dir}}/proxy;
    fastcgi_temp_path {{.Dir}}/fastcgi;
    uwsgi_temp_path {{.Dir}}/uwsgi;
    scgi_temp_path {{.Dir}}/scgi;

    upstream backend {
{{.Block}}
    }
    server {
        listen unix:{{.Dir}}/nginx.sock;
        set_real_ip_from unix:;
        real_ip_header X-Real-IP;
        location / {
            proxy_pass http://backend;
            proxy_buffering off;
            {{.Location}}
            add_header X-Asked $upstream_addr always;
            add_header X-Answered $upstream_status always;
        }
    }
}
`))

func configure(t *testing.T, dir, block, location string) string {
	var text bytes.Buffer
	require.NoError(t, configuration.Execute(&text, map[string]string{"Dir": dir, "Block": block, "Location": location}))
	return text.String()
}

// binary finds nginx, or ends the test.
func binary(t *testing.T) string {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // sbin is not in everybody's path
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("nginx is not installed, and CI is set")
	}
	t.Skip("nginx is not installed: apt-get install nginx")
	return ""
}

// tempDir is a directory whose path is short enough for a unix socket in it.
func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "trunk")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// start runs nginx until the test ends, and returns a transport to it.
func start(t *testing.T, dir, text string) http.RoundTripper {
	conf := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	var said bytes.Buffer
	cmd := exec.Command(binary(t), "-c", conf, "-p", dir, "-e", filepath.Join(dir, "error.log"))
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()

	transport := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "nginx.sock"))
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cmd.Process.Kill()
		<-done
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			lines := strings.SplitAfter(string(log), "\n")
			t.Logf("the end of nginx's error.log:\n%s", strings.Join(lines[max(0, len(lines)-20):], ""))
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := transport.DialContext(t.Context(), "", "")
		if err == nil {
			c.Close()
			return transport
		}
		select {
		case <-done:
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Fatalf("nginx has ended:\n%s%s", said.String(), log)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("nginx does not listen: %v\n%s", err, said.String())
		}
	}
}
