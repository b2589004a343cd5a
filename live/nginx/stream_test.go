//go:build unix

package nginx

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

var _ = template.Must(configuration.New("stream").Parse(`{{template "main" .}}
stream {
    log_format asked '$upstream_addr: $status';
    {{template "upstream" .}}
    server {
        listen unix:{{.Dir}}/nginx.sock proxy_protocol;
        set_real_ip_from unix:;
        proxy_pass backend;
        {{.Rules}}
        access_log {{.Dir}}/asked asked;
    }
}
`))

func TestTheSameBackendsOverTCP(t *testing.T) {
	tests := append(common, []given{
		{name: "hash of the client, connections held", backends: "a b c", hold: true,
			block: "hash $remote_addr; server a max_conns=3; server b weight=2 max_conns=3; server c;"},
		{name: "peers that hang up", backends: "a mute c", // after the connect, so they have not failed
			block: "server a fail_timeout=1h; server mute weight=3 fail_timeout=1h; server c fail_timeout=1h;"},
		{name: "least_conn, peers that hang up", backends: "a mute c", hold: true,
			block: "least_conn; server a fail_timeout=1h; server mute fail_timeout=1h; server c weight=2 fail_timeout=1h;"},
	}...)
	for _, g := range tests {
		t.Run(g.name, func(t *testing.T) { overTCP(t, g).judge(t, requests, g.hold) })
	}
}

// A peer is out for fail_timeout, and out again if it fails after that. When it takes
// a connection it is in, though that connection is still open: over HTTP it would be
// in when the request has ended.
func TestLiveAgainAtTheConnect(t *testing.T) {
	const failTimeout = 2 * time.Second
	s := overTCP(t, given{backends: "a -b c", block: "server a weight=2; server b weight=3 max_fails=2 fail_timeout=2s; server c;"})
	for range 2 {
		s.judge(t, 20, false) // in much less than fail_timeout
		time.Sleep(failTimeout + time.Second)
	}
	s.start(t, "b")
	s.judge(t, requests, true)
}

func overTCP(t *testing.T, g given) *sides {
	load := loadStream(t)
	b := startBackends(t, g.backends, greet)
	dir := tempDir(t)
	text := configure(t, "stream", settings{Dir: dir, Load: load, Block: b.lines(g.block), Rules: g.rules})
	return &sides{b, connections(t, b, throughNginx(t, dir, start(t, dir, text))), connections(t, b, throughTrunk(t, upstream(t, text)))}
}

// greet serves connections: it says the backend's name, and waits until the other
// side closes. The backend mute closes at once.
func greet(name string, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if name != "mute" {
				fmt.Fprintln(c, name)
				io.Copy(io.Discard, c)
			}
		}()
	}
}

// A connect makes a connection for a client; nil if there is none. asked is for when
// it has ended.
type connect func(client netip.Addr) (c net.Conn, asked func() string)

func throughNginx(t *testing.T, dir string, dial dialer) connect {
	file, err := os.Open(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	log := bufio.NewReader(file)
	return func(client netip.Addr) (net.Conn, func() string) {
		c, err := dial(t.Context())
		require.NoError(t, err)
		family, to := 4, "127.0.0.1"
		if client.Is6() {
			family, to = 6, "::1"
		}
		_, err = fmt.Fprintf(c, "PROXY TCP%d %s %s 1 1\r\n", family, client, to)
		require.NoError(t, err)
		return c, func() string {
			line, err := log.ReadString('\n')
			require.NoError(t, err)
			return line[:len(line)-1]
		}
	}
}

func throughTrunk(t *testing.T, up *balancer.Upstream) connect {
	return func(client netip.Addr) (net.Conn, func() string) {
		log := &balancer.AttemptLog{}
		ctx := balancer.WithLog(balancer.WithInput(t.Context(), balancer.Input{Client: client}), log)
		c, err := up.DialContext(ctx, "tcp", "")
		status := 200
		if err != nil {
			status = balancer.StatusCode(err)
		}
		return c, func() string { return fmt.Sprintf("%s: %d", log.Addr(), status) }
	}
}

// connections is the side that makes them so. What comes of one is "a, b: 200 (b)".
func connections(t *testing.T, b *backends, connect connect) side {
	return func(i int) (end func() string) {
		c, asked := connect(client(i))
		if c == nil {
			what := b.names(asked()) + " ()"
			return func() string { return what }
		}
		r := bufio.NewReader(c)
		name, err := r.ReadString('\n')
		if err != io.EOF {
			require.NoError(t, err)
		}
		end = func() string {
			// nginx ends the session when it is told that no more will come. It lets
			// the peer go, writes its log, and closes the connection, in this order.
			require.NoError(t, c.(interface{ CloseWrite() error }).CloseWrite())
			rest, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.NoError(t, c.Close())
			return fmt.Sprintf("%s (%s)", b.names(asked()), strings.TrimSpace(name))
		}
		if name == "" { // it has ended
			what := end()
			return func() string { return what }
		}
		return end
	}
}
