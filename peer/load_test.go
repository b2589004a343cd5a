package peer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A count of failures that is full stays so, and does not run over into the flags.
func TestMostFails(t *testing.T) {
	var l load
	l.recount(maxFailCount - 1)
	for range 3 {
		require.False(t, l.failed(0))
		require.EqualValues(t, maxFailCount, l.fails())
		require.Zero(t, l.Load()&(out|limited|down|locked))
	}
	l.recount(maxFailCount + 1)
	require.EqualValues(t, maxFailCount, l.fails())
}
