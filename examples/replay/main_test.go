package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/peer/recording"
)

func TestTheSampleIsTheStory(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, story(&file))
	require.Equal(t, file.String(), string(sample), "night.jsonl is not what is recorded: go generate ./examples/replay")
}

func TestReplay(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, false, ""))
	require.Contains(t, out.String(), "=== the night\n23:00:00 request 1\nround robin, try 1 (2 left): a, greatest current weight\n")
	require.Contains(t, out.String(), "23:00:01 request 2: FAILED\n")
	require.Contains(t, out.String(), "30 gets in 120 operations: every pick and every state came out as recorded.")

	path := filepath.Join(t.TempDir(), "night.jsonl")
	require.NoError(t, run(&out, true, path))
	again := strings.Builder{}
	require.NoError(t, run(&again, false, path))
	require.True(t, strings.HasPrefix(out.String(), again.String()))
	require.NoError(t, run(&out, false, "../../internal/parity/testdata/traces/least_conn.jsonl.gz"))
}

// docs/explain.md tells the story in the library's words: each of its blocks with a
// decision is what the replay prints, and they stand in the replay's order.
func TestTheDocumentSaysWhatTheLibraryPrints(t *testing.T) {
	text, err := os.ReadFile("../../docs/explain.md")
	require.NoError(t, err)
	var printed []string
	_, err = recording.Replay(bytes.NewReader(sample), nil, func(s *recording.Step) error {
		if s.Decision != nil {
			printed = append(printed, s.Decision.String())
		}
		return nil
	})
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```\n(round robin.*?)\n```").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(blocks), 5)
	for _, b := range blocks {
		for len(printed) > 0 && printed[0] != b[1] {
			printed = printed[1:]
		}
		require.NotEmpty(t, printed, "not printed, or not in this order:\n%s", b[1])
	}
}
