package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheWave(t *testing.T) {
	together, err := simulate(false)
	require.NoError(t, err)
	require.Equal(t, clients, together.most(), "all ask the same backend")

	apart, err := simulate(true)
	require.NoError(t, err)
	require.Less(t, apart.most(), clients/2)
	for b := range backends {
		// Two whole cycles: every client is exact, wherever it began.
		require.Equal(t, together.total(b), apart.total(b))
		require.Equal(t, steps*fair(b), apart.total(b))
	}
}

func TestFleet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.svg")
	var out strings.Builder
	require.NoError(t, run(&out, path))
	t.Log("\n" + out.String())
	require.Contains(t, out.String(), path)

	drawn, err := os.ReadFile(path)
	require.NoError(t, err)
	committed, err := os.ReadFile("../../docs/img/fleet.svg")
	require.NoError(t, err)
	require.Equal(t, string(committed), string(drawn), "docs/img/fleet.svg is not what is drawn: go generate ./examples/fleet")
}
