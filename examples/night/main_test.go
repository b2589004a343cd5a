package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the README and the documentation say of that morning.
func TestTheFiguresOfTheMorning(t *testing.T) {
	for i, want := range [][]int{
		{3, 4, 6, 11, 20}, // nginx
		{1, 2, 5, 9, 18},  // the weight comes back by time
		{3, 4, 6, 11, 20}, // the debt alone forgiven
		{1, 2, 4, 9, 18},  // both
		{1, 2, 5, 9, 18},  // a tenth
		{1, 2, 4, 9, 18},  // a tenth, and forgiven
		{4, 5, 8, 13, 22}, // slow start
	} {
		n, err := play(remedies[i])
		require.NoError(t, err)
		var got []int
		for _, first := range []int{11, 20, 50, 100, 200} {
			got = append(got, n.toB(first))
		}
		require.Equal(t, want, got, remedies[i].name)
	}
}

func TestNight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "night.svg")
	var out strings.Builder
	require.NoError(t, run(&out, path))
	t.Log("\n" + out.String())
	require.Contains(t, out.String(), path)

	drawn, err := os.ReadFile(path)
	require.NoError(t, err)
	for d := xml.NewDecoder(strings.NewReader(string(drawn))); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
	}
	committed, err := os.ReadFile("../../docs/img/night.svg")
	require.NoError(t, err)
	require.Equal(t, string(committed), string(drawn), "docs/img/night.svg is not what is drawn: go generate ./examples/night")
}
