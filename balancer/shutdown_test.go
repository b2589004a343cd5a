package balancer_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/peer/recording"
)

// Shutdown waits for the requests that hold peers, and for nothing else; none comes in.
func TestShutdownWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		up, err := balancer.New(t.Context(), balancer.Config{Record: &file, Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}}})
		require.NoError(t, err)
		first, second := up.Start(t.Context(), balancer.Input{}), up.Start(t.Context(), balancer.Input{})
		require.True(t, first.Next())
		require.True(t, second.Next())
		idle := up.Start(t.Context(), balancer.Input{}) // holds no peer

		ended := make(chan error, 1)
		go func() { ended <- up.Shutdown(t.Context()) }()
		synctest.Wait()
		require.False(t, idle.Next())
		require.ErrorIs(t, idle.Err(), balancer.ErrClosed)
		require.ErrorIs(t, up.Add(t.Context(), balancer.Server{Addr: "10.0.0.3:80"}), balancer.ErrClosed)

		first.Done(nil)
		synctest.Wait()
		require.Empty(t, ended, "one request is left")
		second.Close() // abandoned
		synctest.Wait()
		require.NoError(t, <-ended)
		require.NoError(t, up.Shutdown(t.Context()), "again, at once")

		result, err := recording.Replay(&file, nil, nil)
		require.NoError(t, err)
		require.Equal(t, 2, result.Gets)
		require.Empty(t, result.End)
		require.False(t, result.Cut, "recorded to the end")
	})
}

// The context ends the waiting; the upstream is closed all the same, and the request
// that is left goes on to its end.
func TestShutdownGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, err := balancer.New(t.Context(), balancer.Config{Servers: []balancer.Server{{Addr: "10.0.0.1:80"}}})
		require.NoError(t, err)
		try := up.Start(t.Context(), balancer.Input{})
		require.True(t, try.Next())
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, up.Shutdown(ctx), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(began))
		try.Done(nil)
		require.NoError(t, try.Err())
		require.EqualValues(t, 1, up.Snapshot().Total.OK)
	})
}
