package peer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Under addresses that come and go a slot is used again when its last request has ended:
// neither places nor what a request has tried grow with the number of changes.
func TestSlotsAreUsedAgain(t *testing.T) {
	u, err := New([]Server{{Addr: "a0"}, {Addr: "b0"}}, nil, nil)
	require.NoError(t, err)
	var held Request // holds a peer that is long gone
	require.NoError(t, u.Begin(&held))
	require.NoError(t, u.Get(&held))
	for i := range 1000 {
		require.NoError(t, u.Update([]Server{{Addr: fmt.Sprint("a", i+1)}, {Addr: fmt.Sprint("b", i+1)}}))
		var r Request
		require.NoError(t, u.Begin(&r))
		require.NoError(t, u.Get(&r))
		require.NoError(t, u.Free(&r, OK))
	}
	// Two that are there, one that is held, and two that were there when these came.
	require.LessOrEqual(t, len(u.places), 5)
	require.NoError(t, u.Free(&held, OK))
}
