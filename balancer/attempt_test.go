package balancer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

// Whatever is logged or marshalled keeps its cause.
func TestCausesAreLoggedAndMarshalled(t *testing.T) {
	cause := errors.New("connection refused")
	attempt := balancer.Attempt{Addr: "10.0.0.1:80", Outcome: balancer.Failed, Kind: balancer.KindError, Status: 502, Err: cause,
		Duration: 3 * time.Millisecond}
	failed := &balancer.Error{Upstream: "u", Attempts: []balancer.Attempt{attempt}, Cause: &balancer.BodyError{Err: cause}}
	log := new(balancer.AttemptLog)
	for name, v := range map[string]any{
		"an attempt": attempt, "an error": failed,
		"a look-up": &balancer.ResolveError{Host: "app.example", Err: cause},
		"a body":    &balancer.BodyError{Err: cause},
		"an event":  balancer.Event{Kind: balancer.LookupFailed, Lookup: &balancer.Lookup{Host: "app.example", Err: cause}},
	} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		assert.Contains(t, string(text), "connection refused", name)
		for _, handler := range []func(*bytes.Buffer) slog.Handler{
			func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var out bytes.Buffer
			slog.New(handler(&out)).Info("x", "v", v)
			assert.Contains(t, out.String(), "connection refused", name)
		}
	}
	text, err := json.Marshal(attempt)
	require.NoError(t, err)
	assert.JSONEq(t, `{"addr":"10.0.0.1:80","outcome":"failed","kind":"error","status":502,"error":"connection refused","duration":3000000}`, string(text))
	text, err = json.Marshal(failed)
	require.NoError(t, err)
	assert.JSONEq(t, `{"upstream":"u","status":400,"cause":"trunk: reading the request body: connection refused","attempts":[`+
		`{"addr":"10.0.0.1:80","outcome":"failed","kind":"error","status":502,"error":"connection refused","duration":3000000}]}`, string(text))
	text, err = json.Marshal(log)
	require.NoError(t, err)
	assert.Equal(t, "null", string(text))

	for _, v := range []any{attempt, failed, log, balancer.Warning{}, balancer.Event{}, &balancer.Decision{}} {
		_, ok := v.(slog.LogValuer)
		assert.True(t, ok, "%T", v)
	}
}

// A caller that gives up blames nobody, and may have another peer.
func TestErrAbandoned(t *testing.T) {
	f := newFixture(t, balancer.Config{}, "a:; b:")
	try := f.up.Start(context.Background(), balancer.Input{})
	defer try.Close()
	require.True(t, try.Next())
	first := try.Peer().Addr
	try.Done(balancer.ErrAbandoned)
	require.Empty(t, f.fails())
	require.Equal(t, balancer.Abandoned, try.Attempts()[0].Outcome)
	require.ErrorIs(t, try.Err(), balancer.ErrAbandoned)
	require.True(t, try.Next())
	require.NotEqual(t, first, try.Peer().Addr)
	try.Done(nil)
	require.NoError(t, try.Err())
}
