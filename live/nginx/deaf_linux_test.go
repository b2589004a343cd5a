package nginx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A peer that does not answer has failed when the connect takes too long.
func TestConnectTakesTooLong(t *testing.T) {
	s := overTCP(t, given{backends: "a -b c", rules: "proxy_connect_timeout 500ms;",
		block: "server a weight=2; server b max_fails=2 fail_timeout=1h; server c;"})
	deaf, err := s.ports["b"].ListenDeaf()
	require.NoError(t, err)
	t.Cleanup(deaf.Close)
	s.judge(t, 50, false)
}
