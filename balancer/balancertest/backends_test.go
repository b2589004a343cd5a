package balancertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/balancertest"
)

const three = `upstream u { server a; server b; server c; }`

// get sends a GET and tells of the answer: "200 body".
func get(lb *balancertest.LB, backends http.RoundTripper) (string, error) {
	client := &http.Client{Transport: lb.Upstream().RoundTripper(backends)}
	resp, err := client.Get("http://u/path")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(body)), err
}

func TestBackendsAnswerWithTheirNames(t *testing.T) {
	lb := balancertest.New(t, three)
	backends := lb.Backends()
	for _, want := range []string{"200 a", "200 b", "200 c"} {
		got, err := get(lb, backends)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	backends.WantAsked("a b c")
	backends.WantAsked("")
}

func TestScripts(t *testing.T) {
	tests := []struct {
		name   string
		answer balancertest.Answer
		want   string
		asked  string
		failed int64 // a's failures
	}{
		{"a status", balancertest.Answer{Status: 503, Body: "busy"}, "503 busy", "a", 0},
		{"nobody listens", balancertest.Answer{Err: balancertest.Refused}, "200 b", "a b", 1},
		{"the connection breaks", balancertest.Answer{Err: balancertest.Reset}, "200 b", "a b", 1},
		{"the answer takes too long", balancertest.Answer{Delay: 61 * time.Second}, "200 b", "a b", 1},
		{"an error of the test's own", balancertest.Answer{Err: errors.New("lost")}, "200 b", "a b", 1},
		{"an empty answer", balancertest.Answer{Status: 204}, "204 ", "a", 0},
		{"a handler", balancertest.Answer{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			io.WriteString(w, r.Host+r.URL.Path)
		})}, "201 u/path", "a", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			lb := balancertest.New(t, three)
			backends := lb.Backends().Script("a", test.answer)
			got, err := get(lb, backends)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			backends.WantAsked(test.asked)
			require.Equal(t, test.failed, lb.Upstream().Snapshot().Peers[0].Fails)
		})
	}
}

func TestGarbageAndBrokenBodies(t *testing.T) {
	lb := balancertest.New(t, `upstream u { server a; server b; server c; }`)
	backends := lb.Backends().
		Script("a", balancertest.Answer{Err: balancertest.Garbage}).
		Script("b", balancertest.Answer{Body: "hel", Cut: true})
	_, err := get(lb, backends)
	require.Equal(t, 502, balancer.StatusCode(err), "invalid_header is not passed on by default")
	got, err := get(lb, backends)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "200 hel", got)
	backends.WantAsked("a b")
}

// A script goes from answer to answer, and its last one stays.
func TestAScriptIsPlayedInOrder(t *testing.T) {
	lb := balancertest.New(t, `upstream u { server a max_fails=0; server b backup; }`)
	backends := lb.Backends().Script("a",
		balancertest.Answer{Err: balancertest.Refused}, balancertest.Answer{Body: "up"}, balancertest.Answer{Err: balancertest.Reset})
	for _, want := range []string{"200 b", "200 up", "200 b", "200 b"} {
		got, err := get(lb, backends)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	backends.WantAsked("a b a a b a b")
}

func TestBackendsReadTheRequestBody(t *testing.T) {
	lb := balancertest.New(t, three)
	backends := lb.Backends().Script("a", balancertest.Answer{Err: balancertest.Refused}).
		Script("b", balancertest.Answer{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })})
	client := &http.Client{Transport: lb.Upstream().RoundTripper(backends)}
	resp, err := client.Post("http://u/", "text/plain", strings.NewReader("echo"))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "echo", string(body))
}

func TestAnErrorKeepsItsCause(t *testing.T) {
	lb := balancertest.New(t, `upstream u { server a; server b; }`)
	refused := balancertest.Answer{Err: balancertest.Refused}
	_, err := get(lb, lb.Backends().Script("a", refused).Script("b", refused))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// On the kit's clock a delay moves the clock.
func TestDelays(t *testing.T) {
	lb := balancertest.New(t, three)
	backends := lb.Backends().Script("a", balancertest.Answer{Delay: 3 * time.Second})
	before := lb.Now()
	got, err := get(lb, backends)
	require.NoError(t, err)
	require.Equal(t, "200 a", got)
	require.Equal(t, 3*time.Second, lb.Now().Sub(before))
}

// In a bubble the caller's deadline, the delays and the fail timeout are on one clock.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := balancertest.Config(t, three)
		c.Clock = balancertest.Bubble
		c.Retry.ReadTimeout = 2 * time.Second
		lb := balancertest.NewConfig(t, c)
		backends := lb.Backends().
			Script("a", balancertest.Answer{Delay: time.Hour}).
			Script("c", balancertest.Answer{Delay: time.Second})
		start := time.Now()

		got, err := get(lb, backends) // a is too slow, b answers
		require.NoError(t, err)
		require.Equal(t, "200 b", got)
		require.Equal(t, 2*time.Second, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", "http://u/", nil)
		require.NoError(t, err)
		_, err = lb.Upstream().RoundTripper(backends).RoundTrip(r) // c is slower than the caller
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, lb.Upstream().Snapshot().Peers[2].Fails, "which says nothing of c")
		backends.WantAsked("a b c")

		lb.WantNone("a", 9*time.Second)
		lb.Recover("a")
		require.Equal(t, 13*time.Second, time.Since(start).Round(time.Second))
	})
}

// A caller's deadline that is long enough is the peer's timeout, as in production.
func TestADeadlineInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := balancertest.Config(t, `upstream u { server a; server b; }`)
		c.Clock = balancertest.Bubble
		lb := balancertest.NewConfig(t, c)
		backends := lb.Backends().Script("a", balancertest.Answer{Delay: time.Hour})

		client := &http.Client{Transport: lb.Upstream().RoundTripper(backends), Timeout: 10 * time.Second}
		_, err := client.Get("http://u/")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		lb.WantNone("a", 10*time.Second)
	})
}

func TestWrongBackends(t *testing.T) {
	says(t, `
the wrong backends were asked, from the 2nd on:
  want a
  got  a b
it was decided so:
  round robin, try 2 (2 left): b, first of equal current weights
    a weight=1: tried
    b weight=1: conns 0, cw 1+1-2=0  <- taken
    c weight=1: conns 0, cw 1+1=2`,
		func(t testing.TB) {
			lb := balancertest.New(t, three)
			backends := lb.Backends().Script("a", balancertest.Answer{Err: balancertest.Refused})
			get(lb, backends)
			backends.WantAsked("a")
		})
}

func TestABodyThatWasNotClosed(t *testing.T) {
	says(t, "balancertest: a is still held by 1 at the end of the test: was an answer's body not closed?", func(t testing.TB) {
		lb := balancertest.New(t, three)
		client := &http.Client{Transport: lb.Upstream().RoundTripper(lb.Backends())}
		client.Get("http://u/")
	})
}

func TestAnotherHost(t *testing.T) {
	lb := balancertest.New(t, three)
	client := &http.Client{Transport: lb.Upstream().RoundTripper(lb.Backends())}
	_, err := client.Get("http://elsewhere/")
	require.ErrorContains(t, err, `no backend "elsewhere": is the URL's host the upstream's name, "u"?`)
}
