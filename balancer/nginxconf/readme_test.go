package nginxconf_test

import (
	"context"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer/nginxconf"
)

// The first block that a reader sees is taken, and draws no warning.
func TestFirstBlockOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)`(upstream backend \\{.*?\n\\})`").FindSubmatch(text)
	require.NotNil(t, block)
	up, err := nginxconf.NewUpstream(context.Background(), string(block[1]))
	require.NoError(t, err)
	require.Empty(t, up.Warnings())
	require.NoError(t, up.Close())
}
