package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeploy(t *testing.T) {
	r, err := deploy(context.Background())
	require.NoError(t, err)
	require.Len(t, r.steps, peers+2)
	require.Zero(t, r.total.lost)
	require.Zero(t, r.total.repeated)
	for _, s := range r.steps {
		fair := s.requests / (peers - 1)
		require.LessOrEqual(t, s.most, 2*fair+clients, "a burst in %q", s.name)
	}
	var out strings.Builder
	require.NoError(t, r.print(&out))
	require.Contains(t, out.String(), "0 were sent twice, 0 were lost")
}
