//go:build unix

package nginx

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/port"
)

// backends are the servers behind both: a, b, c, ... by name.
type backends struct {
	ports map[string]*port.Port
	serve func(name string, l net.Listener)
}

// startBackends starts the backends of these names; those with a "-" before them are
// dead: they refuse connections. serve serves until the listener is closed.
func startBackends(t *testing.T, names string, serve func(name string, l net.Listener)) *backends {
	b := &backends{ports: map[string]*port.Port{}, serve: serve}
	for _, name := range strings.Fields(names) {
		name, dead := strings.CutPrefix(name, "-")
		p, err := port.New()
		require.NoError(t, err)
		t.Cleanup(p.Close)
		b.ports[name] = p
		if !dead {
			b.start(t, name)
		}
	}
	return b
}

// start brings a backend to life.
func (b *backends) start(t *testing.T, name string) {
	l, err := b.ports[name].Listen()
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go b.serve(name, l)
}

// lines replaces the names at the beginning of server lines by their addresses.
func (b *backends) lines(block string) string {
	for name, p := range b.ports {
		for _, end := range []string{" ", ";"} {
			block = strings.ReplaceAll(block, "server "+name+end, "server "+p.Addr()+end)
		}
	}
	return block
}

// names turns addresses, as in $upstream_addr, into names.
func (b *backends) names(addrs string) string {
	for name, p := range b.ports {
		addrs = strings.ReplaceAll(addrs, p.Addr(), name)
	}
	return addrs
}
