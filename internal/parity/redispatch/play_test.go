//go:build linux

package redispatch

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The simplest proxy: it asks A, and nobody else.
type askA struct {
	addr      string
	recorder  *Recorder
	transport http.Transport
}

func startAskA(_ *Scenario, addrs map[string]string, rec *Recorder) (Handler, error) {
	return &askA{addr: addrs["A"], recorder: rec}, nil
}

func (p *askA) Close() error { p.transport.CloseIdleConnections(); return nil }

func (p *askA) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	step, err := StepOf(r)
	if err != nil {
		panic(err)
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", p.addr
	out.Header.Del("Connection")
	out.Close = false
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		status := 502
		if r.Context().Err() != nil {
			status = 0
		}
		p.recorder.Add(step, Record{Chain: []string{p.addr}, Status: []int{status}, LogStatus: 502})
		w.WriteHeader(502)
		return
	}
	defer resp.Body.Close()
	p.recorder.Add(step, Record{Chain: []string{p.addr}, Status: []int{resp.StatusCode}, LogStatus: resp.StatusCode})
	w.Header().Set("X-Backend", resp.Header.Get("X-Backend"))
	w.WriteHeader(resp.StatusCode)
	io.Copy(w, resp.Body)
}

// Three connections: the third request breaks the first one, and the fourth and
// fifth overlap.
const askAScenario = `{"name": "t/a", "group": "t", "servers": [{"id": "A", "weight": 1}],
"keepalive": true, "backends": {"A": ["ok", "status:503", "close_before_response", "slow_header:300"]}, "connections": {"A": 3}, "steps": [
{"request": {"method": "GET"}, "expect": {"status": 200, "served_by": "A", "chain": ["A"], "upstream_status": [200], "executed": {"A": 1}}},
{"request": {"method": "POST", "body_len": 2000000, "key": "x", "src": "127.3.2.1"},
 "expect": {"status": 503, "served_by": "A", "chain": ["A"], "upstream_status": [503], "executed": {"A": 1}, "bodies": [["A", 2000000]]}},
{"request": {"method": "PUT", "body_len": 10, "body_delay_ms": 10},
 "expect": {"status": 502, "served_by": null, "chain": ["A"], "upstream_status": [502], "executed": {"A": 1}, "bodies": [["A", 10]]}},
{"wait_ms": 10, "request": {"method": "GET"}, "expect": {"status": 200, "served_by": "A", "chain": ["A"], "upstream_status": [200], "executed": {"A": 1}}},
{"overlap_ms": 50, "request": {"method": "GET", "abort_after_ms": 100},
 "expect": {"status": "aborted", "served_by": null, "chain": ["A"], "upstream_status": [null], "executed": {"A": 1}, "log_status": 502}},
{"set": {"A": ["status:404"]}, "request": {"method": "GET"},
 "expect": {"status": 404, "served_by": "A", "chain": ["A"], "upstream_status": [404], "executed": {"A": 1}}}
]}`

func loadAskA(t *testing.T) *Scenario {
	all, err := parse([]byte(strings.ReplaceAll(askAScenario, "\n", " ")))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

// playUntil gives a busy machine some chances to keep to the scenario's times.
func playUntil(sc *Scenario, good func(Result) bool) Result {
	return PlayAll([]*Scenario{sc}, Serve(startAskA), 1, func(r Result) bool { return !good(r) })[0]
}

func TestPlayEqual(t *testing.T) {
	r := playUntil(loadAskA(t), Result.Equal)
	require.NoError(t, r.Err)
	require.Empty(t, r.Differences)
	require.True(t, r.Equal())
}

// Whatever is not as recorded is found, and nothing else.
func TestPlayFindsDifference(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(*Scenario)
		want  Difference
	}{
		{"status", func(sc *Scenario) { sc.Steps[0].Expect.Status, sc.Steps[0].Expect.LogStatus = "502", 200 }, Difference{0, FieldStatus, "200", "502"}},
		{"served by", func(sc *Scenario) { sc.Steps[0].Expect.ServedBy = "" }, Difference{0, FieldServedBy, "A", "null"}},
		{"chain", func(sc *Scenario) { sc.Steps[0].Expect.Chain = []string{"A", NoLive} }, Difference{0, FieldChain, "A", "A NOLIVE"}},
		{"upstream status", func(sc *Scenario) { sc.Steps[4].Expect.UpstreamStatus = []int{504} }, Difference{4, FieldUpstreamStatus, "[0]", "[504]"}},
		{"executed", func(sc *Scenario) { sc.Steps[3].Expect.Executed = nil }, Difference{3, FieldExecuted, "{A:1}", "{}"}},
		{"bodies", func(sc *Scenario) { sc.Steps[2].Expect.Bodies[0].Bytes = unread }, Difference{2, FieldBodies, "[A:10]", "[A:null]"}},
		{"log status", func(sc *Scenario) { sc.Steps[4].Expect.LogStatus = 499 }, Difference{4, FieldLogStatus, "502", "499"}},
		{"connections", func(sc *Scenario) { sc.Connections["A"] = 9 }, Difference{WholeScenario, FieldConnections, "{A:3}", "{A:9}"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sc := loadAskA(t)
			tc.spoil(sc)
			want := []Difference{tc.want}
			r := playUntil(sc, func(r Result) bool { return slices.Equal(r.Differences, want) })
			require.NoError(t, r.Err)
			require.Equal(t, want, r.Differences)
		})
	}
}

// A scenario that the player does not understand is refused, not played as another.
func TestLoadRefuses(t *testing.T) {
	for _, line := range []string{
		`{"name": "x", "backends": {"A": ["juggle"]}}`,
		`{"name": "x", "backends": {"A": ["status:abc"]}}`,
		`{"name": "x", "backends": {"A": ["ok:1"]}}`,
		`{"name": "x", "servers": [{"id": "A"}], "backends": {}}`,
		`{"name": "x", "backends": {"A": ["ok"]}, "steps": [{"set": {"B": ["ok"]}}]}`,
		`{"name": "x"`,
	} {
		_, err := parse([]byte(line))
		require.Error(t, err, line)
	}
	_, err := Load(t.TempDir())
	require.Error(t, err)
}
