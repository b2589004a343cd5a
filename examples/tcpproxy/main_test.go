package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShow(t *testing.T) {
	var out strings.Builder
	require.NoError(t, show(context.Background(), &out))
	lines := strings.Split(out.String(), "\n")
	require.Contains(t, lines[0], "a! b! c! a! b! c! a! b! c!")
	require.NotContains(t, lines[1], "b!")
	require.Contains(t, out.String(), "a: failed 0\nb: failed 1\nc: failed 0\n")
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, serve(ctx, new(strings.Builder), "127.0.0.1:0", []string{"127.0.0.1:1"}))
}
