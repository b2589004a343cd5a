//go:build unix

package nginx

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
)

// configuration holds what the configurations of http and of stream have in common.
// They listen on a unix socket, so that no port has to be free.
var configuration = template.Must(template.New("").Parse(`
{{define "main"}}
{{.Load}}
daemon off;
master_process off;
worker_processes 1;
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/error.log;
events { worker_connections 1024; }
{{end}}

{{define "upstream"}}
    upstream backend {
{{.Block}}
    }
{{end}}
`))

// settings are what a configuration is made of.
type settings struct {
	Dir, Load, Block, Rules string
}

// configure writes the text of a section, "http" or "stream".
func configure(t *testing.T, section string, s settings) string {
	var text bytes.Buffer
	require.NoError(t, configuration.ExecuteTemplate(&text, section, s))
	return text.String()
}

// tempDir is a directory whose path is short enough for a unix socket in it.
func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "trunk")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// binary finds nginx, or ends the test.
func binary(t *testing.T) string {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // sbin is not in everybody's path
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, "nginx", "nginx")
	return ""
}

var modulesPath = regexp.MustCompile(`--modules-path=(\S+)`)

// loadStream is the directive that loads the module stream: none where it is built
// in. Without the module it ends the test.
func loadStream(t *testing.T) string {
	out, err := exec.Command(binary(t), "-V").CombinedOutput()
	require.NoError(t, err)
	if slices.Contains(strings.Fields(string(out)), "--with-stream") {
		return ""
	}
	if dir := modulesPath.FindSubmatch(out); dir != nil {
		path := filepath.Join(string(dir[1]), "ngx_stream_module.so")
		if _, err := os.Stat(path); err == nil {
			return "load_module " + path + ";"
		}
	}
	missing(t, "nginx's module stream", "libnginx-mod-stream")
	return ""
}

// missing ends the test for want of something.
func missing(t *testing.T, what, pkg string) {
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed, and CI is set", what)
	}
	t.Skipf("%s is not installed: apt-get install %s", what, pkg)
}

type dialer func(context.Context) (net.Conn, error)

// start runs nginx until the test ends, and returns what connects to it.
func start(t *testing.T, dir, text string) dialer {
	conf, log := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "error.log")
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	var said bytes.Buffer
	cmd := exec.Command(binary(t), "-c", conf, "-p", dir, "-e", log)
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // its workers end with it, if it has any
		<-done
		if t.Failed() {
			text, _ := os.ReadFile(log)
			lines := strings.SplitAfter(string(text), "\n")
			t.Logf("the end of nginx's error.log:\n%s%s", said.String(), strings.Join(lines[max(0, len(lines)-20):], ""))
		}
	})
	// nginx writes its pid when it listens. A connection, to see whether it
	// does, would be a session to stream, and take a peer.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if pid, err := os.ReadFile(filepath.Join(dir, "nginx.pid")); err == nil && len(pid) > 0 {
			break
		}
		select {
		case <-done:
			t.Fatal("nginx has ended")
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("nginx does not listen")
		}
	}
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "nginx.sock"))
	}
}
