package balancer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer/recording"
	"github.com/trunklb/trunk/sticky"
)

// What an upstream was asked can be asked again, and comes out the same.
func TestRecordReplays(t *testing.T) {
	var file bytes.Buffer
	up, err := New(context.Background(), Config{Name: "x", Resolver: NoLookup, Record: &file, Method: leastconn.New(), Sticky: sticky.Cookie{Name: "srv"},
		Servers: []Server{{Addr: "a:1", Weight: 5, Route: "a"}, {Addr: "b:1"}, {Addr: "c:1", Backup: true}}})
	require.NoError(t, err)
	var texts []string
	ctx := WithDecisions(context.Background(), func(d *Decision) { texts = append(texts, d.String()) })
	for fails := range 4 {
		one(up, ctx, fails)
	}
	try := up.Start(ctx, Input{Hint: "a"})
	try.Next()
	try.Close()
	require.NoError(t, up.FlushRecord())
	require.NoError(t, up.Close())
	require.NoError(t, up.Close())

	var again []string
	_, err = recording.Replay(&file, nil, func(s *recording.Step) error {
		if s.Decision != nil {
			again = append(again, s.Decision.String())
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, texts, again)
}

// A recording can be given away where its texts are hidden, and comes out the same
// all the same; that needs other texts for other peers.
func TestRecordRedacted(t *testing.T) {
	config := Config{Name: "x", Resolver: NoLookup, Method: leastconn.New(), Sticky: sticky.Cookie{Name: "srv"},
		Servers: []Server{{Addr: "a.secret:1", Route: "secret-a"}, {Addr: "b.secret:1"}}}
	var file bytes.Buffer
	config.Record, config.Redact = &file, func(what TextKind, text string) string {
		return fmt.Sprintf("%s-%x", what, crc32.ChecksumIEEE([]byte(text)))
	}
	up, err := New(context.Background(), config)
	require.NoError(t, err)
	try := up.Start(context.Background(), Input{Key: "secret key", Client: netip.MustParseAddr("192.0.2.1"), Hint: "secret-a"})
	require.True(t, try.Next())
	try.Close()
	require.NoError(t, up.Close())
	require.NotContains(t, file.String(), "secret")
	require.NotContains(t, file.String(), "192.0.2.1")
	result, err := recording.Replay(&file, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 1, result.Gets)

	// What it panics at is not written, and ends the recording.
	file.Reset()
	config.Redact = func(what TextKind, text string) string {
		if what == "key" {
			panic("angry")
		}
		return string(what) + text[:1]
	}
	up, err = New(context.Background(), config)
	require.NoError(t, err)
	one(up, context.Background(), 0)
	require.EqualValues(t, 1, up.Snapshot().Total.OK)
	require.ErrorContains(t, up.Close(), "angry")
	require.NotContains(t, file.String(), "user-42")

	config.Redact = func(TextKind, string) string { return "x" }
	_, err = New(context.Background(), config)
	var refused *ConfigError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "Redact", refused.Field)

	config.Redact = func(TextKind, string) string { panic("angry") }
	_, err = New(context.Background(), config)
	require.ErrorContains(t, err, "angry", "nothing was written that it was to hide")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("disk full")

// angry is a writer that panics.
type angry struct{}

func (angry) Write([]byte) (int, error) { panic(errFull) }

// A recording that cannot be written ends, and tells why; the requests go on. So does
// New: the recording is no reason to have no upstream.
func TestRecordThatFails(t *testing.T) {
	for name, to := range map[string]io.Writer{"error": full{}, "panic": angry{}} {
		t.Run(name, func(t *testing.T) {
			up, err := New(context.Background(), Config{Name: "x", Record: to, Servers: []Server{{Addr: "127.0.0.1:1"}}})
			require.NoError(t, err)
			require.ErrorContains(t, up.FlushRecord(), "disk full", "at once")
			one(up, context.Background(), 0)
			require.ErrorContains(t, up.FlushRecord(), "disk full")
			require.ErrorContains(t, up.Close(), "disk full")
		})
	}
}
