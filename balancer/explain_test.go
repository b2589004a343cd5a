package balancer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// explained is an upstream of a (weight 5), b and c, in whose decisions the
// peers' order is read.
func explained(t *testing.T, e Explain) *Upstream {
	up, err := New(context.Background(), Config{Name: "x", Resolver: NoLookup, Explain: e,
		Servers: []Server{{Addr: "a:1", Weight: 5}, {Addr: "b:1"}, {Addr: "c:1"}}})
	require.NoError(t, err)
	return up
}

// one makes a request on which n peers fail.
func one(up *Upstream, ctx context.Context, fails int) {
	try := up.Start(ctx, Input{Key: "user-42"})
	defer try.Close()
	for try.Next() {
		err := errors.New("refused")
		if fails--; fails < 0 {
			err = nil
		}
		try.Done(err)
	}
}

func TestDecisionsThatAreWanted(t *testing.T) {
	for _, tt := range []struct {
		name string
		e    Explain
		want []string
	}{
		{"none", Explain{}, nil},
		{"all", Explain{Share: 1}, []string{"a:1", "a:1", "b:1", "c:1", "no live upstreams"}},
		{"retries", Explain{Retries: true}, []string{"b:1", "c:1"}},
		{"nobody live", Explain{NoLivePeers: true}, []string{"no live upstreams"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			if tt.name != "none" {
				tt.e.OnDecision = func(d *Decision) {
					if d.Winner < 0 {
						got = append(got, "no live upstreams")
					} else {
						got = append(got, d.Peers[d.Winner].Addr)
					}
				}
			}
			up := explained(t, tt.e)
			one(up, context.Background(), 0)
			one(up, context.Background(), 3)
			one(up, context.Background(), 0)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestShareOfDecisions(t *testing.T) {
	for _, share := range []float64{0.01, 0.25, 0.5, 1} {
		n := 0
		up := explained(t, Explain{Share: share, OnDecision: func(*Decision) { n++ }})
		for range 1000 {
			one(up, context.Background(), 0)
		}
		require.InDelta(t, 1000*share, n, 1)
	}
}

func TestDecisionsOfOneRequest(t *testing.T) {
	up := explained(t, Explain{})
	var texts []string
	ctx := WithDecisions(context.Background(), func(d *Decision) { texts = append(texts, d.String()) })
	one(up, ctx, 1)
	one(up, context.Background(), 0)
	require.Len(t, texts, 2)
	require.True(t, strings.HasPrefix(texts[0], "round robin, try 1 (3 left), key \"user-42\": a:1, greatest current weight\n"), texts[0])
	require.Contains(t, texts[1], "a:1 weight=5: tried\n")
}

func TestRedactedDecisions(t *testing.T) {
	var text string
	var event Event
	up, err := New(context.Background(), Config{Name: "x", Resolver: NoLookup, Servers: []Server{{Addr: "a:1"}, {Addr: "b:1"}},
		Explain: Explain{Share: 1, OnDecision: func(d *Decision) { text = d.String() }},
		OnEvent: func(e Event) { event = e },
		Redact:  func(what TextKind, text string) string { return string(what) + "-" + text[:1] }})
	require.NoError(t, err)
	one(up, context.Background(), 1)
	require.Equal(t, []string{"addr-a", "addr-a", "hint-"}, []string{event.Peer.Server.Addr, event.Peer.Server.Name, event.Peer.SID[:5]})
	require.NotContains(t, text, "user-42")
	require.Contains(t, text, `key "key-u": addr-b, `)
}

func TestExplainIsChecked(t *testing.T) {
	f := func(*Decision) {}
	for _, e := range []Explain{{Share: -1, OnDecision: f}, {Share: 1.5, OnDecision: f}, {Share: math.NaN(), OnDecision: f}, {Share: 1}, {Retries: true}} {
		_, err := New(context.Background(), Config{Name: "x", Explain: e, Servers: []Server{{Addr: "127.0.0.1:1"}}})
		var c *ConfigError
		require.ErrorAs(t, err, &c)
		require.True(t, strings.HasPrefix(c.Field, "Explain."))
	}
}

func TestSnapshotOfAnUpstream(t *testing.T) {
	now := 1700000000 * time.Second
	up, err := New(context.Background(), Config{Name: "x", Servers: []Server{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}},
		Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	try := up.Start(context.Background(), Input{})
	require.True(t, try.Next())
	now += 7 * time.Second
	s := up.Snapshot()
	require.EqualValues(t, 1, s.Peers[0].Conns)
	require.Equal(t, 7*time.Second, s.Peers[0].OldestHeld)
	require.Zero(t, s.Peers[1].OldestHeld)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(text), `"oldest_held":7000000000`)
	try.Close()
	require.Zero(t, up.Snapshot().Peers[0].OldestHeld)
	require.Zero(t, (*Upstream)(nil).Snapshot())
}

func TestEventsOfAnUpstream(t *testing.T) {
	var kinds []string
	up, err := New(context.Background(), Config{Name: "x", Servers: []Server{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}},
		OnEvent: func(e Event) { kinds = append(kinds, e.Kind.String()) }})
	require.NoError(t, err)
	one(up, context.Background(), 2)
	require.Equal(t, []string{"failed", "ejected", "failed", "ejected"}, kinds)
}

// A low limit of tries never reaches the backups, unless one is kept for them.
func TestKeepBackup(t *testing.T) {
	for keep, want := range map[bool]string{false: "127.0.0.1:1, 127.0.0.1:2", true: "127.0.0.1:1, 127.0.0.1:9"} {
		up, err := New(context.Background(), Config{Name: "x", Retry: Retry{Tries: 2, KeepBackup: keep},
			Servers: []Server{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}, {Addr: "127.0.0.1:3"}, {Addr: "127.0.0.1:9", Backup: true}}})
		require.NoError(t, err)
		var log AttemptLog
		one(up, WithLog(context.Background(), &log), 2)
		require.Equal(t, want, log.Addr())
	}
}

// A hook that panics harms nobody: the request that it was called in goes on, and
// the panic is counted.
func TestHooksThatPanicHarmNobody(t *testing.T) {
	angry := func(*Decision) { panic("angry") }
	for name, c := range map[string]Config{
		"OnDecision": {Explain: Explain{Share: 1, OnDecision: angry}},
		"Redact":     {Explain: Explain{Share: 1, OnDecision: func(*Decision) {}}, Redact: func(TextKind, string) string { panic("angry") }},
		"OnEvent":    {OnEvent: func(Event) { panic("angry") }},
	} {
		t.Run(name, func(t *testing.T) {
			c.Name, c.Servers = "x", []Server{{Addr: "127.0.0.1:1", MaxConns: 1}, {Addr: "127.0.0.1:2", Down: true}}
			up, err := New(context.Background(), c)
			require.NoError(t, err)
			r, err := http.NewRequest(http.MethodGet, "http://x/", nil)
			require.NoError(t, err)
			resp, err := up.RoundTripper(ok).RoundTrip(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			one(up, context.Background(), 0)
			s := up.Snapshot()
			require.Zero(t, s.Peers[0].Conns)
			require.EqualValues(t, 2, s.Peers[0].OK)
			require.EqualValues(t, 2, s.HookPanics)
			require.Regexp(t, "^angry\n", s.HookPanic)
			require.Contains(t, s.HookPanic, "TestHooksThatPanicHarmNobody")
		})
	}
}

// A function of the request's own that panics keeps no peer: net/http's server, for
// one, recovers.
func TestDecisionsThatPanicKeepNoPeer(t *testing.T) {
	up, err := New(context.Background(), Config{Name: "x", Servers: []Server{{Addr: "127.0.0.1:1", MaxConns: 1}, {Addr: "127.0.0.1:2", Down: true}}})
	require.NoError(t, err)
	ctx := WithDecisions(context.Background(), func(*Decision) { panic("angry") })
	require.PanicsWithValue(t, "angry", func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/", nil)
		require.NoError(t, err)
		_, _ = up.RoundTripper(ok).RoundTrip(r)
	})
	require.PanicsWithValue(t, "angry", func() { one(up, ctx, 0) })
	require.Zero(t, up.Snapshot().Peers[0].Conns)
	require.Zero(t, up.Snapshot().HookPanics)
}

// ok is a base that answers.
var ok = roundTripperFunc(func(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
})

// A request whose body cannot be made again is its own fault, and no peer's.
func TestGetBodyThatFails(t *testing.T) {
	for name, getBody := range map[string]func() (io.ReadCloser, error){
		"error": func() (io.ReadCloser, error) { return nil, errors.New("gone") },
		"nil":   func() (io.ReadCloser, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			base := roundTripperFunc(func(r *http.Request) (*http.Response, error) {
				asked++
				_, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				r.Body.Close()
				return nil, io.ErrUnexpectedEOF
			})
			up, err := New(context.Background(), Config{Name: "x", Servers: []Server{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}, {Addr: "127.0.0.1:3"}}})
			require.NoError(t, err)
			r, err := http.NewRequest(http.MethodPut, "http://x/", io.NopCloser(strings.NewReader("hello")))
			require.NoError(t, err)
			r.GetBody = getBody
			_, err = up.RoundTripper(base).RoundTrip(r)
			var body *BodyError
			require.ErrorAs(t, err, &body)
			require.Equal(t, 1, asked)
			s := up.Snapshot()
			require.Equal(t, []int64{1, 0, 0}, []int64{s.Peers[0].Fails, s.Peers[1].Fails, s.Peers[2].Fails})
			require.Zero(t, s.Peers[1].Conns)
		})
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
