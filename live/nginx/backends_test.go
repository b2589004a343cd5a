//go:build unix

package nginx

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/port"
)

// Headers by which a request says what a backend is to do with it, so that both
// sides meet the same backends.
const (
	// headerFail is "b 503" or "b close": what the backend of that name does.
	headerFail = "X-Fail"
	// headerHold makes the backend send its header, and wait with the body for
	// the release of that name.
	headerHold = "X-Hold"
)

// backends are the servers behind both: a, b, c, ... by name.
type backends struct {
	addr map[string]string
	name map[string]string // by address
	mu   sync.Mutex
	hold map[string]chan struct{}
}

// startBackends starts the backends of these names; those with a "-" before them are dead.
func startBackends(t *testing.T, names ...string) *backends {
	b := &backends{addr: map[string]string{}, name: map[string]string{}, hold: map[string]chan struct{}{}}
	for _, name := range names {
		addr := ""
		if dead, ok := strings.CutPrefix(name, "-"); ok {
			name, addr = dead, refusing(t)
		} else {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.serve(name, w, r) }))
			t.Cleanup(s.Close)
			addr = s.Listener.Addr().String()
		}
		b.addr[name], b.name[addr] = addr, name
	}
	return b
}

// refusing returns an address that refuses connections until the test ends.
func refusing(t *testing.T) string {
	p, err := port.New()
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p.Addr()
}

func (b *backends) serve(name string, w http.ResponseWriter, r *http.Request) {
	if who, what, _ := strings.Cut(r.Header.Get(headerFail), " "); who == name {
		if what == "close" {
			panic(http.ErrAbortHandler)
		}
		status, _ := strconv.Atoi(what)
		w.WriteHeader(status)
		return
	}
	if id := r.Header.Get(headerHold); id != "" {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		<-b.gate(id)
	}
	io.WriteString(w, name)
}

// gate is what a held request waits for.
func (b *backends) gate(id string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hold[id] == nil {
		b.hold[id] = make(chan struct{})
	}
	return b.hold[id]
}

// lines replaces the names at the beginning of server lines by their addresses.
func (b *backends) lines(block string) string {
	for name, addr := range b.addr {
		for _, end := range []string{" ", ";"} {
			block = strings.ReplaceAll(block, "server "+name+end, "server "+addr+end)
		}
	}
	return block
}

// names turns addresses, as in $upstream_addr, into names.
func (b *backends) names(addrs string) string {
	for addr, name := range b.name {
		addrs = strings.ReplaceAll(addrs, addr, name)
	}
	return addrs
}
