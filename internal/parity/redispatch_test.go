//go:build linux

package parity

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/parity/redispatch"
)

const (
	redispatchDir = "testdata/redispatch"
	// redispatchParallel is how many scenarios are played side by side. They
	// mostly wait; but the more there are, the more often one of the
	// recording's margins of 75 ms is missed.
	redispatchParallel = 16
)

// TestRedispatch plays the recordings of nginx's retries and passive health
// through an httputil.ReverseProxy over trunk with NginxParity.
// TRUNK_REDISPATCH=DIR plays another folder's *.jsonl.
func TestRedispatch(t *testing.T) {
	playRedispatch(t, likeNginx, alwaysDiffers)
}

// TestRedispatchDefaults plays the same under trunk's defaults. What differs then
// is what docs/parity.md lists, and all of it.
func TestRedispatchDefaults(t *testing.T) {
	defaults := func(_ *redispatch.Scenario, c balancer.Config) balancer.Config { return c }
	playRedispatch(t, defaults, slices.Concat(alwaysDiffers, defaultsDiffer))
}

// likeNginx is balancer.NginxParity, with what the scenarios say of bodies.
func likeNginx(sc *redispatch.Scenario, c balancer.Config) balancer.Config {
	c.Retry.BufferBody = 4 << 20 // client_max_body_size was raised
	c = balancer.NginxParity(c)
	if !sc.RequestBuffering {
		c.Retry.BufferFirst, c.Retry.BufferBody = false, 0
	}
	return c
}

// alwaysDiffers is what NginxParity cannot set, or does not.
var alwaysDiffers = []redispatch.Known{
	{
		What: "HTTP/0.9: an answer that does not begin with HTTP/ is passed on by nginx as it is, and its peer healthy; " +
			"http.Transport calls it malformed, so it is an invalid header, which counts: 502, or another peer",
		From: redispatch.FirstStep(func(sc *redispatch.Scenario, i int) bool {
			return sc.Steps[i].Expect.LogStatus == 9
		}),
	},
}

// defaultsDiffer is what trunk does otherwise unless NginxParity sets it back.
var defaultsDiffer = []redispatch.Known{
	{
		What: "bodies: a request body without GetBody cannot be sent again once it was read (nginx buffers it); " +
			"the answer or error of the peer that read it is final",
		From: redispatch.FirstStep(bodySentTwice),
	},
	{
		What: "uploads: without buffering, a peer is taken before the body has come (nginx reads it first), " +
			"so a client that leaves meanwhile leaves a peer",
		From: redispatch.FirstStep(func(sc *redispatch.Scenario, i int) bool {
			step := sc.Steps[i]
			return sc.RequestBuffering && step.Expect.Status == redispatch.Aborted && len(step.Expect.Chain) == 0
		}),
	},
	{
		What: "aborted probes: a client that leaves before the answer says nothing about the peer (Abandoned); " +
			"to nginx this is a success, which heals",
		From: redispatch.FirstStep(abortedProbe),
	},
	{
		What: "kept-alive connections that were dead: the request is sent again to the same peer, over a new connection, " +
			"where that is safe; to nginx this is a failure of the peer, and another try",
		From: redispatch.FirstStep(staleConnection),
	},
	{
		What: "connections: nginx closes that of an answer which it passes over; trunk reads the rest, " +
			"if it is short, and keeps it",
		From:   redispatch.FirstStep(keptAfterPassedOver),
		Fields: []redispatch.Field{redispatch.FieldConnections},
	},
}

// keptAfterPassedOver: a peer whose answer is passed over at a step is asked
// again later, while connections are kept.
func keptAfterPassedOver(sc *redispatch.Scenario, i int) bool {
	e := sc.Steps[i].Expect
	for n := range len(e.Chain) - 1 {
		// 502 and 504 are verdicts, unless a backend answers so.
		status := fmt.Sprintf("status:%d", e.UpstreamStatus[n])
		if sc.Keepalive && slices.Contains(sc.Backends[e.Chain[n]], status) && executedAfter(sc, i, e.Chain[n]) {
			return true
		}
	}
	return false
}

func executedAfter(sc *redispatch.Scenario, i int, id string) bool {
	for _, step := range sc.Steps[i+1:] {
		if step.Expect.Executed[id] > 0 {
			return true
		}
	}
	return false
}

// bodySentTwice: a body goes to more than one peer. Those that refuse do not
// read it.
func bodySentTwice(sc *redispatch.Scenario, i int) bool {
	step := sc.Steps[i]
	if !sc.RequestBuffering || step.Request.BodyLen == 0 {
		return false
	}
	for n := range len(step.Expect.Chain) - 1 {
		id := step.Expect.Chain[n]
		if step.Expect.Executed[id] > 0 || slices.Contains(sc.Backends[id], "reset_on_accept") {
			return true
		}
	}
	return false
}

// abortedProbe: the client leaves a peer that has failed before.
func abortedProbe(sc *redispatch.Scenario, i int) bool {
	e := sc.Steps[i].Expect
	if e.Status != redispatch.Aborted || len(e.Chain) == 0 {
		return false
	}
	probed := e.Chain[len(e.Chain)-1]
	for _, step := range sc.Steps[:i] {
		for n, id := range step.Expect.Chain {
			if id == probed && step.Expect.UpstreamStatus[n] >= 500 {
				return true
			}
		}
	}
	return false
}

// staleConnection: an attempt fails on a connection that was kept. Either the
// same peer is asked again for it, or http.Transport does so by itself.
func staleConnection(sc *redispatch.Scenario, i int) bool {
	step := sc.Steps[i]
	if !sc.Keepalive {
		return false
	}
	for n, id := range step.Expect.Chain {
		if step.Expect.UpstreamStatus[n] != 502 || id == redispatch.NoLive {
			continue
		}
		if n+1 < len(step.Expect.Chain) && step.Expect.Chain[n+1] == id || replayed(sc, step.Request, id) {
			return true
		}
	}
	return false
}

// replayed reports whether a request is sent again to the same peer where a kept
// connection ends before any part of the answer.
func replayed(sc *redispatch.Scenario, r redispatch.Request, id string) bool {
	silent := func(behaviour string) bool {
		return behaviour == "close_before_response" || behaviour == "reset_before_response"
	}
	return r.BodyLen == 0 && !slices.Contains([]string{"POST", "LOCK", "PATCH"}, r.Method) &&
		slices.ContainsFunc(sc.Backends[id], silent)
}

func playRedispatch(t *testing.T, preset func(*redispatch.Scenario, balancer.Config) balancer.Config, list []redispatch.Known) {
	scenarios, ours := redispatchScenarios(t)
	began := time.Now()
	results := redispatch.PlayAll(scenarios, redispatch.ReverseProxy(preset), redispatchParallel, func(r redispatch.Result) bool {
		applying, unexplained := redispatch.Explain(r, list)
		listed := ours && r.Equal() && len(applying) > 0 // maybe by a race that the machine has decided
		return r.Err != nil || len(unexplained) > 0 || listed
	})

	equal, again := 0, 0
	byGroup, byReason := map[string]int{}, map[string]int{}
	for _, r := range results {
		applying, unexplained := redispatch.Explain(r, list)
		name := r.Scenario.Name
		switch {
		case r.Err != nil:
			t.Errorf("%s: %v", name, r.Err)
		case len(unexplained) > 0:
			t.Errorf("%s:%s", name, lines(unexplained))
		case len(r.Earlier) > 0:
			again++
			t.Logf("%s: as expected when played again; first:%s", name, lines(r.Earlier[0]))
		}
		if !r.Equal() {
			byGroup[r.Scenario.Group]++
			for _, k := range applying {
				byReason[k.What]++
			}
			continue
		}
		equal++
		// The list is to be explicit: nothing is on it for good measure.
		for _, k := range applying {
			if ours {
				t.Errorf("%s: equal, although listed: %s", name, k.What)
			}
		}
	}
	t.Logf("%d of %d scenarios equal, in %v (%d were played again)",
		equal, len(results), time.Since(began).Round(100*time.Millisecond), again)
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		t.Logf("not equal, by group: %3d %s", byGroup[group], group)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		t.Logf("not equal, as known: %3d %s", byReason[reason], reason)
	}
}

func lines(differences []redispatch.Difference) string {
	var b strings.Builder
	for _, d := range differences {
		fmt.Fprintf(&b, "\n\t%v", d)
	}
	return b.String()
}

// redispatchScenarios returns what is to be played, and whether that is what we
// know. A short test plays every tenth of the scenarios that take less than a second.
func redispatchScenarios(t *testing.T) (scenarios []*redispatch.Scenario, ours bool) {
	if dir := os.Getenv("TRUNK_REDISPATCH"); dir != "" {
		if _, err := os.Stat(dir); err != nil && !filepath.IsAbs(dir) {
			dir = filepath.Join("..", "..", dir) // as seen from the module's root
		}
		scenarios, err := redispatch.Load(dir)
		require.NoError(t, err)
		return scenarios, false
	}
	scenarios, err := redispatch.Load(redispatchDir)
	require.NoError(t, err)
	if testing.Short() {
		scenarios = every(10, slices.DeleteFunc(scenarios, func(sc *redispatch.Scenario) bool {
			return sc.Approx.Duration() >= time.Second
		}))
	}
	return scenarios, true
}

func every[T any](n int, all []T) []T {
	var some []T
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}
