package port

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPort(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	defer p.Close()
	dial := func() error {
		c, err := net.Dial("tcp", p.Addr())
		if err == nil {
			c.Close()
		}
		return err
	}
	require.Error(t, dial())
	for range 3 {
		l, err := p.Listen()
		require.NoError(t, err)
		require.NoError(t, dial())
		require.NoError(t, l.Close())
		require.Error(t, dial())
	}
}
