package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuickstart(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	t.Log("\n" + out.String())

	rows := map[string][]string{} // the five figures of each phase
	for line := range strings.Lines(out.String()) {
		title, _, _ := strings.Cut(line, ":")
		if title == "before" || title == "during" || title == "after" {
			f := strings.Fields(line)
			rows[title] = f[len(f)-5:]
		}
	}
	require.Len(t, rows, 3)
	require.Equal(t, []string{"120", "120", "60", "0", "0"}, rows["before"])
	require.Equal(t, "0", rows["during"][1], "what the dead backend answered")
	for title, row := range rows {
		require.Equal(t, "0", row[4], "lost %s", title)
	}
	require.NotEqual(t, "0", rows["after"][1], "what it answered when it was back")
}
