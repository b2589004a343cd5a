package balancer_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
)

// loop runs the loop of Start; each peer answers by the next of results, the last
// of which stays.
func loop(try *balancer.Try, results ...error) (asked string) {
	defer try.Close()
	for try.Next() {
		asked += try.Peer().Addr
		try.Done(results[0])
		if len(results) > 1 {
			results = results[1:]
		}
	}
	return asked
}

func TestTry(t *testing.T) {
	broken := errors.New("broken")
	late := timeoutError("late")
	for _, tc := range []struct {
		name    string
		retry   balancer.Retry
		results []error
		asked   string
		fails   string
		status  int
	}{
		{name: "the first answers", results: []error{nil}, asked: "a", status: 200},
		{name: "a failure goes on", results: []error{broken, nil}, asked: "ab", fails: "a=1", status: 200},
		{name: "all fail", results: []error{broken}, asked: "abc", fails: "a=1 b=1 c=1", status: 502},
		{name: "the last is late", results: []error{broken, late}, asked: "abc", fails: "a=1 b=1 c=1", status: 504},
		{name: "another peer is wanted", results: []error{balancer.ErrNextPeer, nil}, asked: "ab", status: 200},
		{name: "tries", retry: balancer.Retry{Tries: 2}, results: []error{broken}, asked: "ab", fails: "a=1 b=1", status: 502},
		{name: "off", retry: balancer.Retry{Off: true}, results: []error{broken}, asked: "a", fails: "a=1", status: 502},
		{name: "errors only: late is final", retry: balancer.Retry{On: balancer.KindError}, results: []error{late}, asked: "a", fails: "a=1", status: 504},
		{name: "late does not count", retry: balancer.Retry{Counts: balancer.KindError}, results: []error{late, nil}, asked: "ab", status: 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, balancer.Config{Retry: tc.retry}, "a:; b:; c:")
			try := f.up.Start(context.Background(), balancer.Input{})
			require.Equal(t, tc.asked, loop(try, tc.results...))
			require.Equal(t, tc.fails, f.fails())
			require.Equal(t, tc.status, balancer.StatusCode(try.Err()))
			require.Len(t, try.Attempts(), len(tc.asked))
			if last := tc.results[len(tc.results)-1]; last != nil {
				require.ErrorIs(t, try.Err(), last)
			}
		})
	}
}

// The contract of single calls.
func TestTryCalls(t *testing.T) {
	f := newFixture(t, balancer.Config{}, "a:; b:")
	start := func() *balancer.Try { return f.up.Start(context.Background(), balancer.Input{}) }

	try := start()
	require.NoError(t, try.Err(), "before the first Next")
	try.Done(nil)
	require.ErrorIs(t, try.Err(), balancer.ErrNotHeld)
	try = start()
	require.ErrorIs(t, try.Header(), balancer.ErrNotHeld)
	require.ErrorIs(t, try.Connected(), balancer.ErrNotHeld)
	require.ErrorIs(t, try.FirstByte(), balancer.ErrNotHeld)
	require.Zero(t, try.Peer())
	require.True(t, try.Next())
	require.Equal(t, "a", try.Peer().Addr)
	require.Len(t, try.Peer().SID, 32)
	require.NoError(t, try.Connected())
	require.NoError(t, try.FirstByte())
	require.NoError(t, try.Header())
	try.Done(nil)
	require.False(t, try.Next())
	require.NoError(t, try.Err())
	try.Done(nil)
	require.ErrorIs(t, try.Err(), balancer.ErrNotHeld, "Done twice")
	try.Close()
	try.Close()

	try = start()
	require.True(t, try.Next())
	require.True(t, try.Next(), "Next without Done")
	try.Close()
	require.False(t, try.Next())
	require.Empty(t, f.fails())
	require.Equal(t, balancer.Abandoned, try.Attempts()[0].Outcome)
	require.Equal(t, balancer.Abandoned, try.Attempts()[1].Outcome)
}

// The caller's own end is not the peer's fault, and ends the loop.
func TestTryCancel(t *testing.T) {
	for _, tc := range []struct {
		name    string
		header  bool
		parity  bool
		took    time.Duration
		cancel  bool
		outcome balancer.Outcome
	}{
		{name: "cancel", cancel: true, outcome: balancer.Abandoned},
		{name: "cancel after the header", cancel: true, header: true, outcome: balancer.OK},
		{name: "cancel, nginx", cancel: true, parity: true, outcome: balancer.OK},
		{name: "short deadline", took: time.Second, outcome: balancer.Abandoned},
		{name: "long deadline", took: 5 * time.Second, outcome: balancer.Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := balancer.Config{}
			if tc.parity {
				c = balancer.NginxParity(c)
			}
			f := newFixture(t, c, "a:; b:")
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			if tc.cancel {
				ctx, cancel = context.WithCancel(context.Background())
			}
			try := f.up.Start(ctx, balancer.Input{})
			require.True(t, try.Next())
			if tc.header {
				require.NoError(t, try.Header())
			}
			f.clock.advance(tc.took)
			if tc.cancel {
				cancel()
			}
			<-ctx.Done()
			try.Done(ctx.Err())
			require.False(t, try.Next())
			require.ErrorIs(t, try.Err(), ctx.Err())
			require.Equal(t, tc.outcome, try.Attempts()[0].Outcome)
			cancel()
			late := f.up.Start(ctx, balancer.Input{})
			require.False(t, late.Next(), "a context that has ended gets no peer")
			require.ErrorIs(t, late.Err(), ctx.Err())
		})
	}
}

// No live peers is an attempt, and a sentinel.
func TestTryNoLivePeers(t *testing.T) {
	f := newFixture(t, balancer.Config{}, "a:; b:")
	log := new(balancer.AttemptLog)
	ctx := balancer.WithLog(context.Background(), log)
	broken := errors.New("broken")
	require.Equal(t, "ab", loop(f.up.Start(ctx, balancer.Input{}), broken))
	try := f.up.Start(ctx, balancer.Input{})
	require.Empty(t, loop(try, broken))
	require.ErrorIs(t, try.Err(), balancer.ErrNoLivePeers)
	require.NotErrorIs(t, try.Err(), broken)
	require.Equal(t, 502, balancer.StatusCode(try.Err()))
	require.Equal(t, "a, b, backend", log.Addr())
	require.Equal(t, "502, 502, 502", log.Status())
}

// The input of Start: a key for hash, an address for ip_hash.
func TestTryInput(t *testing.T) {
	picks := func(f *fixture, ctx context.Context, in balancer.Input) string {
		return loop(f.up.Start(ctx, in), nil)
	}
	bg := context.Background()
	keyed := newFixture(t, balancer.Config{Method: hash.New("$arg_user")}, "a:; b:; c:")
	first := picks(keyed, bg, balancer.Input{Key: "user-42"})
	for range 5 {
		require.Equal(t, first, picks(keyed, bg, balancer.Input{Key: "user-42"}))
		require.Equal(t, first, picks(keyed, balancer.WithInput(bg, balancer.Input{Key: "user-42"}), balancer.Input{}))
	}
	require.Equal(t, "abc", picks(keyed, bg, balancer.Input{})+picks(keyed, bg, balancer.Input{})+picks(keyed, bg, balancer.Input{}),
		"an empty key: round robin")

	byClient := newFixture(t, balancer.Config{Method: iphash.New()}, "a:; b:; c:")
	v4 := netip.MustParseAddr("192.0.2.1")
	first = picks(byClient, bg, balancer.Input{Client: v4})
	require.Equal(t, first, picks(byClient, bg, balancer.Input{Client: netip.MustParseAddr("::ffff:192.0.2.1")}))
	try := byClient.up.Start(bg, balancer.Input{})
	require.False(t, try.Next())
	var missing *balancer.InputError
	require.ErrorAs(t, try.Err(), &missing)
	require.Equal(t, "Input.Client", missing.Field)
	require.Contains(t, try.Err().Error(), "Input.Client")
	var codes []balancer.Code
	for _, w := range byClient.up.Warnings() {
		codes = append(codes, w.Code)
	}
	require.Contains(t, codes, balancer.CodeClientAddress)
}
