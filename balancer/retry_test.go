package balancer_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/leasttime"
)

const (
	errorAndTimeout = balancer.KindError | balancer.KindTimeout
	with503         = errorAndTimeout | balancer.KindHTTP503
	withAll         = errorAndTimeout | balancer.KindInvalidHeader | balancer.KindHTTP500 | balancer.KindHTTP502 |
		balancer.KindHTTP503 | balancer.KindHTTP504 | balancer.KindHTTP429 | balancer.KindHTTP403 | balancer.KindHTTP404
)

// What goes on to another peer, and what counts, as in nginx
// (docs/parity.md, section 8).
func TestRetryPolicy(t *testing.T) {
	for _, tc := range []struct {
		name   string
		retry  balancer.Retry
		script string
		method string // GET
		body   string
		want   string // the answer
		asked  string
		fails  string
		// maxFails is that of each peer, but for 0.
		maxFails int
	}{
		{name: "an answer is an answer", script: "a: 200; b: 200", want: "200 a", asked: "a"},
		{name: "refused goes on", script: "a: refuse; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "reset goes on", script: "a: reset; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "timeout goes on", script: "a: timeout; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "no HTTP does not go on by default, but counts", method: "POST", body: "get", script: "a: garbage; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "no HTTP goes on where configured", retry: balancer.Retry{On: withAll}, script: "a: garbage; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "off: an error is final and counts", retry: balancer.Retry{Off: true}, script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "all fail", script: "a: reset; b: refuse", want: "err 502", asked: "a b", fails: "a=1 b=1"},
		{name: "the last one's timeout is a 504", script: "a: reset; b: timeout", want: "err 504", asked: "a b", fails: "a=1 b=1"},
		{name: "then the backup", script: "a: reset; b: reset; c+: 200", want: "200 c", asked: "a b c", fails: "a=1 b=1"},

		{name: "a 500 is an answer by default, from a healthy peer", script: "a: 500; b: 200", want: "500 a", asked: "a"},
		{name: "a 503 goes on where configured, and counts", retry: balancer.Retry{On: with503}, script: "a: 503; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "503, 503, 200", retry: balancer.Retry{On: with503}, script: "a: 503; b: 503; c: 200", want: "200 c", asked: "a b c", fails: "a=1 b=1"},
		{name: "the last answer passes through, uncounted", retry: balancer.Retry{On: with503}, script: "a: 503; b: 503", want: "503 b", asked: "a b", fails: "a=1"},
		{name: "a 404 goes on uncounted", retry: balancer.Retry{On: withAll}, script: "a: 404; b: 200", want: "200 b", asked: "a b"},
		{name: "a 403 goes on uncounted", retry: balancer.Retry{On: withAll}, script: "a: 403; b: 200", want: "200 b", asked: "a b"},
		{name: "a 429 goes on and counts", retry: balancer.Retry{On: withAll}, script: "a: 429; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "a single peer's 503 is the answer", retry: balancer.Retry{On: with503}, script: "a: 503", want: "503 a", asked: "a"},
		{name: "a single peer is never out", script: "a: reset", want: "err 502", asked: "a"},

		{name: "tries 1", retry: balancer.Retry{Tries: 1}, script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "tries 2 of 3", retry: balancer.Retry{Tries: 2}, script: "a: reset; b: reset; c: 200", want: "err 502", asked: "a b", fails: "a=1 b=1"},
		{name: "tries 1: a listed status passes through, uncounted", retry: balancer.Retry{On: with503, Tries: 1}, script: "a: 503; b: 200", want: "503 a", asked: "a"},

		{name: "POST after a refusal goes on", method: "POST", body: "once", script: "a: refuse; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "POST after a connect timeout goes on", method: "POST", body: "once", script: "a: dialtimeout; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "POST once sent does not go on", method: "POST", body: "get", script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "PATCH once sent does not go on", method: "PATCH", body: "get", script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "LOCK once sent does not go on", method: "LOCK", script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "POST with a listed status does not go on, uncounted", retry: balancer.Retry{On: with503}, method: "POST", body: "get", script: "a: 503; b: 200", want: "503 a", asked: "a"},
		{name: "non_idempotent: POST goes on", retry: balancer.Retry{NonIdempotent: true}, method: "POST", body: "get", script: "a: reset; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "PUT with GetBody goes on", method: "PUT", body: "get", script: "a: reset; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "PUT without GetBody, once read, does not go on", method: "PUT", body: "once", script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "PUT without GetBody, unread, goes on", method: "PUT", body: "once", script: "a: refuse; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "PUT remembered goes on", retry: balancer.Retry{BufferBody: 5}, method: "PUT", body: "once", script: "a: reset; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "PUT too long to be remembered does not", retry: balancer.Retry{BufferBody: 4}, method: "PUT", body: "once", script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "PUT read first goes on", retry: balancer.Retry{BufferBody: 5, BufferFirst: true}, method: "PUT", body: "once", script: "a: reset; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "PUT too long to be read first is sent as it comes", retry: balancer.Retry{BufferBody: 4, BufferFirst: true}, method: "PUT", body: "once", script: "a: 200; b: 200", want: "200 a", asked: "a"},
		{name: "and not again", retry: balancer.Retry{BufferBody: 4, BufferFirst: true}, method: "PUT", body: "once", script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},
		{name: "but while it is unread", retry: balancer.Retry{BufferBody: 4, BufferFirst: true}, method: "PUT", body: "once", script: "a: refuse; b: 200", want: "200 b", asked: "a b", fails: "a=1"},

		{name: "again: a peer is asked twice", retry: balancer.Retry{Again: true, Tries: 3}, maxFails: balancer.NoMaxFails, script: "a: reset; b: reset 200", want: "200 b", asked: "a b b", fails: "a=1 b=1"},
		{name: "again: as far as tries go", retry: balancer.Retry{Again: true, Tries: 3}, maxFails: balancer.NoMaxFails, script: "a: reset; b: reset", want: "err 502", asked: "a b b", fails: "a=1 b=2"},
		{name: "again: not one that is out", retry: balancer.Retry{Again: true, Tries: 3}, script: "a: reset; b: reset", want: "err 502", asked: "a b", fails: "a=1 b=1"},
		{name: "again: the only peer", retry: balancer.Retry{Again: true, Tries: 3}, script: "a: reset reset 200", want: "200 a", asked: "a a a"},
		{name: "executions: the request reaches no more peers", retry: balancer.Retry{Executions: 2}, script: "a: reset; b: reset; c: 200", want: "err 502", asked: "a b", fails: "a=1 b=1"},
		{name: "executions: a refusal is none", retry: balancer.Retry{Executions: 1}, script: "a: refuse; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "executions: a status that goes on is one", retry: balancer.Retry{On: with503, Executions: 1}, script: "a: 503; b: 200", want: "503 a", asked: "a"},

		{name: "connect alone: a refusal goes on", retry: balancer.Retry{On: balancer.KindConnect}, script: "a: refuse; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "connect alone: a reset does not", retry: balancer.Retry{On: balancer.KindConnect}, script: "a: reset; b: 200", want: "err 502", asked: "a", fails: "a=1"},

		{name: "counts errors only: a timeout goes on uncounted", retry: balancer.Retry{Counts: balancer.KindError}, script: "a: timeout; b: 200", want: "200 b", asked: "a b"},
		{name: "counts errors only: a 503 goes on uncounted", retry: balancer.Retry{On: with503, Counts: balancer.KindError}, script: "a: 503; b: 200", want: "200 b", asked: "a b"},
		{name: "counts errors only: a refusal counts", retry: balancer.Retry{Counts: balancer.KindError}, script: "a: refuse; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "counts connects only: a reset does not", retry: balancer.Retry{Counts: balancer.KindConnect}, script: "a: reset; b: 200", want: "200 b", asked: "a b"},
		{name: "counts a 404", retry: balancer.Retry{On: withAll, Counts: balancer.KindHTTP404}, script: "a: 404; b: 200", want: "200 b", asked: "a b", fails: "a=1"},
		{name: "counts a 500 that is not passed on", retry: balancer.Retry{Counts: balancer.KindError | balancer.KindHTTP500}, method: "POST", body: "get", script: "a: 500; b: 200", want: "500 a", asked: "a", fails: "a=1"},
		{name: "a body that breaks off does not count", script: "a: cut; b: 200", want: "200 a", asked: "a"},
		{name: "but where configured", retry: balancer.Retry{Counts: balancer.KindError | balancer.KindBody}, script: "a: cut; b: 200", want: "200 a", asked: "a", fails: "a=1"},

		{name: "the real answer is lost when no peer is live", retry: balancer.Retry{On: with503}, script: "a: 503; b: refuse", want: "err 502", asked: "a b", fails: "a=1 b=1"},
		{name: "unless it is kept", retry: balancer.Retry{On: with503, LastAnswer: true}, script: "a: 503; b: refuse", want: "503 a", asked: "a b", fails: "a=1 b=1"},
		{name: "kept, but not needed", retry: balancer.Retry{On: with503, LastAnswer: true}, script: "a: 503; b: 503; c: 200", want: "200 c", asked: "a b c", fails: "a=1 b=1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := balancer.Config{Retry: tc.retry}
			for _, addr := range []string{"a", "b"} {
				if tc.maxFails != 0 {
					c.Servers = append(c.Servers, balancer.Server{Addr: addr, MaxFails: tc.maxFails})
				}
			}
			f := newFixture(t, c, tc.script)
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			r, _ := f.request(context.Background(), method, tc.body)
			require.Equal(t, tc.want, f.send(r))
			require.Equal(t, tc.asked, f.asked())
			require.Equal(t, tc.fails, f.fails())
			for peer, got := range f.bodies {
				require.Equal(t, "hello", got, "what %s has read", peer)
			}
		})
	}
}

// tries counts servers that are configured, not those that are live: a chain may
// end with no peer to be had, and the answer that was there is lost.
func TestRealAnswerBecomes502(t *testing.T) {
	f := newFixture(t, balancer.Config{Retry: balancer.Retry{On: with503}}, "a: 503; b: 200 refuse; c: refuse")
	r, _ := f.request(context.Background(), "GET", "")
	require.Equal(t, "200 b", f.send(r))
	require.Equal(t, "a b", f.asked())
	require.Equal(t, "err 502", f.send(r))
	require.Equal(t, "c b", f.asked())
	_, err := f.rt.RoundTrip(r)
	require.ErrorIs(t, err, balancer.ErrNoLivePeers)
	var e *balancer.Error
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Attempts, 1)
	require.Equal(t, "backend", e.Attempts[0].Addr)
	require.Equal(t, `trunk: upstream "backend": no live peers`, err.Error())
}

// The time budget is looked at between tries, and counted from the first.
func TestTimeBudget(t *testing.T) {
	for _, tc := range []struct {
		took time.Duration
		want string
	}{
		{999 * time.Millisecond, "200 b"},
		{time.Second, "err 502"},
	} {
		f := newFixture(t, balancer.Config{Retry: balancer.Retry{Timeout: time.Second}}, "a: reset; b: 200")
		f.before = func(r *http.Request) {
			if r.URL.Host == "a" {
				f.clock.advance(tc.took)
			}
		}
		r, _ := f.request(context.Background(), "GET", "")
		require.Equal(t, tc.want, f.send(r), tc.took)
	}
}

// An outage is not doubled by its retries.
func TestRetryBudget(t *testing.T) {
	c := balancer.Config{
		Servers: []balancer.Server{{Addr: "a", MaxFails: balancer.NoMaxFails}, {Addr: "b", MaxFails: balancer.NoMaxFails}},
		Retry:   balancer.Retry{Budget: balancer.Budget{Share: 0.1, PerSecond: 0.2}},
	}
	f := newFixture(t, c, "a: reset; b: reset")
	asked := 0
	f.before = func(*http.Request) { asked++ }
	for range 100 {
		r, _ := f.request(context.Background(), "GET", "")
		require.Equal(t, "err 502", f.send(r))
	}
	require.Equal(t, 100+10+2, asked, "a tenth of the requests, and 0.2 a second for ten seconds")

	asked = 0
	f.clock.advance(20 * time.Second)
	r, _ := f.request(context.Background(), "GET", "")
	f.send(r)
	require.Equal(t, 2, asked, "the floor is there again")
}

// The caller's cancel before the header says nothing about the peer; its deadline
// only if the peer had time enough.
func TestCallerGoesAway(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config balancer.Config
		took   time.Duration
		cancel bool
		status int
		fails  string
	}{
		{name: "cancel", cancel: true, took: time.Hour, status: 499},
		{name: "a short deadline", took: 4999 * time.Millisecond, status: 504},
		{name: "a long deadline", took: 5 * time.Second, status: 504, fails: "a=1"},
		{name: "a long deadline that is not to count", took: time.Hour, status: 504,
			config: balancer.Config{Retry: balancer.Retry{DeadlineCounts: balancer.NeverCounts}}},
		{name: "a shorter limit", took: 100 * time.Millisecond, status: 504, fails: "a=1",
			config: balancer.Config{Retry: balancer.Retry{DeadlineCounts: 100 * time.Millisecond}}},
		{name: "timeouts do not count", took: time.Hour, status: 504,
			config: balancer.Config{Retry: balancer.Retry{Counts: balancer.KindError}}},
		{name: "nginx", took: time.Hour, status: 504, config: balancer.NginxParity(balancer.Config{})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, tc.config, "a: silent; b: 200")
			ctx, cancel := context.WithCancel(context.Background())
			if !tc.cancel {
				ctx, cancel = context.WithDeadline(context.Background(), time.Now().Add(20*time.Millisecond))
			}
			defer cancel()
			f.before = func(r *http.Request) {
				f.clock.advance(tc.took)
				if tc.cancel {
					cancel()
				}
			}
			r, _ := f.request(ctx, "GET", "")
			_, err := f.rt.RoundTrip(r)
			require.ErrorIs(t, err, ctx.Err())
			require.Equal(t, tc.status, balancer.StatusCode(err))
			require.Equal(t, "a", f.asked())
			require.Equal(t, tc.fails, f.fails())
		})
	}
}

// Five cancels in a row leave the peer healthy.
func TestFiveCancels(t *testing.T) {
	f := newFixture(t, balancer.Config{}, "a: silent silent silent silent silent 200; b+: 200")
	for range 5 {
		ctx, cancel := context.WithCancel(context.Background())
		f.before = func(*http.Request) { cancel() }
		r, _ := f.request(ctx, "GET", "")
		require.Equal(t, "err 499", f.send(r))
		require.Equal(t, "a", f.asked())
	}
	f.before = nil
	r, _ := f.request(context.Background(), "GET", "")
	require.Equal(t, "200 a", f.send(r))
}

// The deprecated Request.Cancel is the caller's cancel too.
func TestRequestCancel(t *testing.T) {
	f := newFixture(t, balancer.Config{}, "a: reset; b: 200")
	cancel := make(chan struct{})
	f.before = func(*http.Request) { close(cancel) }
	r, _ := f.request(context.Background(), "GET", "")
	r.Cancel = cancel
	require.Equal(t, "err 502", f.send(r))
	require.Equal(t, "a", f.asked())
	require.Empty(t, f.fails())
}

// An answer that is kept is let go when the caller goes away, or another comes.
func TestKeptAnswerIsLetGo(t *testing.T) {
	for _, nx := range []balancer.Config{{}, balancer.NginxParity(balancer.Config{})} {
		nx.Retry.On, nx.Retry.LastAnswer, nx.Retry.ReadTimeout = with503, true, time.Hour
		f := newFixture(t, nx, "a: 503; b: silent")
		ctx, cancel := context.WithCancel(context.Background())
		f.before = func(r *http.Request) {
			if r.URL.Host == "b" {
				cancel()
			}
		}
		r, _ := f.request(ctx, "GET", "")
		require.Equal(t, "err 499", f.send(r))
		require.Equal(t, "a b", f.asked())
	}
	// With a context of its own, its body can be read to the end.
	c := balancer.Config{Retry: balancer.Retry{On: with503, LastAnswer: true, ReadTimeout: time.Hour}}
	f := newFixture(t, c, "a: 503; b: refuse")
	r, _ := f.request(context.Background(), "GET", "")
	require.Equal(t, "503 a", f.send(r))
}

// An answer without a body can be kept like any other.
func TestLastAnswerWithoutBody(t *testing.T) {
	up := newUpstream(t, balancer.Config{Servers: servers("a b"),
		Retry: balancer.Retry{On: balancer.KindHTTP503, LastAnswer: true, ReadTimeout: time.Hour}})
	r, _ := http.NewRequest("GET", "http://backend/", nil)
	resp, err := up.RoundTripper(bodiless{}).RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, 503, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
}

type bodiless struct{}

func (bodiless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 503, Request: r}, nil
}

// A base that returns nothing is a failure, not a panic.
func TestBaseReturnsNothing(t *testing.T) {
	up, err := balancer.New(context.Background(), balancer.Config{Name: "backend", Servers: []balancer.Server{{Addr: "10.0.0.1:80"}}})
	require.NoError(t, err)
	r, _ := http.NewRequest("GET", "http://backend/", nil)
	_, err = up.RoundTripper(nothing{}).RoundTrip(r)
	require.ErrorContains(t, err, "neither an answer nor an error")
	require.Zero(t, up.Snapshot().Peers[0].Conns)
	require.Zero(t, (*balancer.Upstream)(nil).Snapshot())
}

type nothing struct{}

func (nothing) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

// The method's key is made from the request, and least_time hears of the header.
func TestMethodsHearOfRequests(t *testing.T) {
	f := newFixture(t, balancer.Config{Method: hash.New("$arg_k")}, "a: 200; b: 200; c: 200")
	r, _ := f.request(context.Background(), "GET", "")
	first := f.send(r)
	for range 5 {
		require.Equal(t, first, f.send(r))
	}
	f = newFixture(t, balancer.Config{Method: leasttime.New(leasttime.Header)}, "a: 200; b: 200")
	f.before = func(*http.Request) { f.clock.advance(70 * time.Millisecond) }
	r, _ = f.request(context.Background(), "GET", "")
	f.send(r)
	require.EqualValues(t, 70, f.up.Snapshot().Peers[0].Times.Header)
}

// A cancelled probe leaves the peer as it was; in nginx it heals it.
func TestCancelledProbe(t *testing.T) {
	for _, parity := range []bool{false, true} {
		c := balancer.Config{}
		if parity {
			c = balancer.NginxParity(c)
		}
		f := newFixture(t, c, "a: reset silent; b: 200")
		send := func(want string) {
			t.Helper()
			r, _ := f.request(context.Background(), "GET", "")
			require.Equal(t, want, f.send(r))
		}
		send("200 b")
		f.clock.advance(11 * time.Second)
		for f.asked() != "a" { // a's probe
			ctx, cancel := context.WithCancel(context.Background())
			f.before = func(r *http.Request) {
				if r.URL.Host == "a" {
					cancel()
				}
			}
			r, _ := f.request(ctx, "GET", "")
			f.send(r)
		}
		if parity {
			require.Empty(t, f.fails())
		} else {
			require.Equal(t, "a=1", f.fails())
		}
	}
}

// An error of the caller's own body is the caller's, and no peer is blamed.
func TestBodyOfCaller(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, tc := range []struct {
		name   string
		retry  balancer.Retry
		body   io.Reader
		length int64
		asked  string
	}{
		{name: "breaks", body: io.MultiReader(reader("he"), failing{broken}), length: 5, asked: "a"},
		{name: "breaks, remembered", retry: balancer.Retry{BufferBody: 100}, body: io.MultiReader(reader("he"), failing{broken}), length: 5, asked: "a"},
		{name: "breaks, read first", retry: balancer.Retry{BufferBody: 100, BufferFirst: true}, body: failing{broken}, length: 5, asked: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, balancer.Config{Retry: tc.retry}, "a: 200; b: 200")
			r, b := f.request(context.Background(), "PUT", "once")
			b.Reader = tc.body
			_, err := f.rt.RoundTrip(r)
			require.ErrorIs(t, err, broken)
			var body *balancer.BodyError
			require.ErrorAs(t, err, &body)
			require.Equal(t, 400, balancer.StatusCode(err))
			require.Equal(t, tc.asked, f.asked())
			require.Empty(t, f.fails())
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type reader string

func (r reader) Read(p []byte) (int, error) { return copy(p, r), io.EOF }

// A panic in the caller's code keeps no peer.
func TestPanicFreesPeer(t *testing.T) {
	f := newFixture(t, balancer.Config{}, "a: reset; b: 200")
	r, _ := f.request(context.Background(), "PUT", "once")
	r.GetBody = func() (io.ReadCloser, error) { panic("GetBody") }
	require.PanicsWithValue(t, "GetBody", func() { f.rt.RoundTrip(r) })

	f.before = func(*http.Request) { panic("base") }
	r, _ = f.request(context.Background(), "GET", "")
	require.PanicsWithValue(t, "base", func() { f.rt.RoundTrip(r) })
	f.before = nil
}

// A body that was never closed is seen.
func TestUnclosedBodyIsVisible(t *testing.T) {
	f := newFixture(t, balancer.Config{}, "a: 200")
	r, _ := f.request(context.Background(), "GET", "")
	resp, err := f.rt.RoundTrip(r)
	require.NoError(t, err)
	f.clock.advance(time.Minute)
	other, err := f.rt.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, time.Minute, f.up.Snapshot().Peers[0].OldestHeld)
	resp.Body.Close()
	require.Less(t, f.up.Snapshot().Peers[0].OldestHeld, time.Minute)
	require.EqualValues(t, 1, f.up.Snapshot().Peers[0].Conns)
	other.Body.Close()
	// A caller that goes on with a body that is done touches nobody.
	again, err := f.rt.RoundTrip(r)
	require.NoError(t, err)
	resp.Body.Close()
	resp.Body.Read(make([]byte, 1))
	other.Body.Close()
	require.EqualValues(t, 1, f.up.Snapshot().Peers[0].Conns)
	again.Body.Close()
}
