package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/balancer"
)

// httpTable is what a whole request costs through trunk's RoundTripper, against
// the transport alone and against the few lines that go round without it.
func httpTable(t timing) string {
	t.slice = max(t.slice, 2*time.Millisecond)
	stub := stubTransport{}
	head := []string{"HTTP GET", "ns, transport alone", "hand-written", "trunk", "allocations: alone", "hand-written", "trunk"}
	rows := [][]string{httpRow(t, "over a stub", "http://10.0.0.0:80/", stub,
		&rotation{base: stub, hosts: []string{addr(0), addr(1), addr(2)}},
		throughTrunk(stub, addr(0), addr(1), addr(2)))}

	var hosts []string
	for range 3 {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
		defer server.Close()
		hosts = append(hosts, strings.TrimPrefix(server.URL, "http://"))
	}
	alone := http.DefaultTransport.(*http.Transport).Clone()
	rows = append(rows, httpRow(t, "over loopback", "http://"+hosts[0]+"/", alone,
		&rotation{base: alone, hosts: hosts}, throughTrunk(nil, hosts...)))
	return table(head, rows)
}

// httpRow measures one base, first without a balancer, at the url.
func httpRow(t timing, name, url string, alone, byHand, trunk http.RoundTripper) []string {
	works := []func(int){gets(alone, url), gets(byHand, "http://backend/"), gets(trunk, "http://backend/")}
	ns, ratio := t.interleaved(works)
	row := []string{name, fmt.Sprintf("%.0f", ns[0]), figure(ratio[1]), figure(ratio[2])}
	for _, work := range works {
		var before, after runtime.MemStats
		const requests = 1000
		runtime.ReadMemStats(&before)
		work(requests)
		runtime.ReadMemStats(&after)
		row = append(row, fmt.Sprintf("%.0f", float64(after.Mallocs-before.Mallocs)/requests))
	}
	return row
}

func gets(rt http.RoundTripper, url string) func(int) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	must(err)
	return func(requests int) {
		for range requests {
			resp, err := rt.RoundTrip(r)
			must(err)
			io.Copy(io.Discard, resp.Body)
			must(resp.Body.Close())
		}
	}
}

// stubTransport answers at once.
type stubTransport struct{}

func (stubTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// rotation is what one writes in ten lines: round robin, without weights,
// failures or retries.
type rotation struct {
	base  http.RoundTripper
	hosts []string
	next  atomic.Uint64
}

func (t *rotation) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = t.hosts[t.next.Add(1)%uint64(len(t.hosts))]
	return t.base.RoundTrip(r)
}

func throughTrunk(base http.RoundTripper, hosts ...string) http.RoundTripper {
	c := balancer.Config{Name: "backend"}
	for _, host := range hosts {
		c.Servers = append(c.Servers, balancer.Server{Addr: host})
	}
	up, err := balancer.New(context.Background(), c)
	must(err)
	return up.RoundTripper(base)
}
