package balancer

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer/recording"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/sticky"
)

// What an upstream was asked can be asked again, and comes out the same.
func TestRecordReplays(t *testing.T) {
	var file bytes.Buffer
	up, err := New(context.Background(), Config{Name: "x", Resolver: Verbatim, Record: &file, Method: leastconn.New(), Sticky: sticky.Cookie{Name: "srv"},
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
	_, err = recording.Replay(&file, &recording.Options{Each: func(s *recording.Step) error {
		if s.Decision != nil {
			again = append(again, s.Decision.String())
		}
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, texts, again)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("disk full")

// A recording that cannot be written ends; the requests go on.
func TestRecordThatFails(t *testing.T) {
	up, err := New(context.Background(), Config{Name: "x", Record: full{}, Servers: []Server{{Addr: "127.0.0.1:1"}}})
	if err != nil {
		require.ErrorIs(t, err, errFull)
		return
	}
	one(up, context.Background(), 0)
	require.ErrorIs(t, up.FlushRecord(), errFull)
	require.ErrorIs(t, up.Close(), errFull)
}
