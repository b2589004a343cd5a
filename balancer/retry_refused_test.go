package balancer_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

// What cannot mean anything is refused, by the field's name.
func TestRetryThatMeansNothing(t *testing.T) {
	for field, retry := range map[string]balancer.Retry{
		"On":          {On: balancer.KindError | balancer.KindBody},
		"Off":         {Off: true, On: balancer.KindError},
		"Again":       {Again: true},
		"BufferFirst": {BufferFirst: true},
		"Executions":  {Executions: -1},
		"Counts":      {Counts: 1 << 15},
	} {
		_, err := balancer.New(context.Background(), balancer.Config{Servers: servers("10.0.0.1:80"), Retry: retry})
		var e *balancer.ConfigError
		require.ErrorAs(t, err, &e, field)
		require.Equal(t, "Retry."+field, e.Field)
	}
	for _, retry := range []balancer.Retry{{Off: true, NonIdempotent: true}, {Off: true, Again: true, Tries: 2}} {
		_, err := balancer.New(context.Background(), balancer.Config{Servers: servers("10.0.0.1:80"), Retry: retry})
		var e *balancer.ConfigError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "Retry.Off", e.Field)
	}
}

// Kinds and outcomes are text in JSON.
func TestKindsAndOutcomesAsText(t *testing.T) {
	text, err := json.Marshal(map[string]any{"kind": balancer.KindTimeout | balancer.KindConnect, "outcome": balancer.Failed})
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"timeout connect","outcome":"failed"}`, string(text))
}
