package recording_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
)

// What version 1 has written is still read.
func TestVersion1IsStillRead(t *testing.T) {
	file, err := os.ReadFile("testdata/version1.jsonl")
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(file, []byte(`{"version":1,`)))
	first := ""
	result, err := recording.Replay(bytes.NewReader(file), nil, func(s *recording.Step) error {
		if s.Decision != nil && first == "" {
			first = s.Time.Format("15:04:05")
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 30, result.Gets)
	require.Equal(t, "23:00:00", first)

	wrong := bytes.Replace(file, []byte(`"peer":[0,0]`), []byte(`"peer":[0,1]`), 1)
	_, err = recording.Replay(bytes.NewReader(wrong), nil, nil)
	require.ErrorContains(t, err, "recorded 0/1, replayed 0/0")
}

// Every field of a server is written and comes back, redacted where it is a text.
func TestServersAreWrittenWhole(t *testing.T) {
	given := peer.Server{Addr: "a", Name: "n", Weight: 2, TLSName: "tls", Host: "host", Zone: "zone", SlowStart: 1_500_000_000,
		Labels: peer.Labels{}.With("rack", "r7")}
	for redacted, want := range map[bool]string{
		false: `"tls_name":"tls","host":"host","zone":"zone","slow_start":1500000000,"labels":{"rack":"r7"}}`,
		true:  `"tls_name":"addr-tls","host":"addr-host","zone":"label-zone","slow_start":1500000000,"labels":{"rack":"label-r7"}}`,
	} {
		var file bytes.Buffer
		o := &recording.WriterOptions{Name: "u"}
		if redacted {
			o.Redact = func(kind peer.TextKind, text string) string { return string(kind) + "-" + text }
		}
		w := recording.NewWriter(&file, o)
		up, err := peer.New([]peer.Server{given, {Addr: "b"}}, nil, &peer.Options{Record: w})
		require.NoError(t, err)
		heavier := given
		heavier.Weight = 3
		require.NoError(t, up.Update([]peer.Server{heavier, {Addr: "b"}}))
		require.NoError(t, w.Close())
		require.Equal(t, 2, strings.Count(file.String(), want), file.String())
		require.True(t, json.Valid(file.Bytes()))
		_, err = recording.Replay(&file, nil, nil)
		require.NoError(t, err)
	}
}
