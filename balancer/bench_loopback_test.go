package balancer_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trunklb/trunk/balancer"
)

func okServer(b *testing.B) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	b.Cleanup(s.Close)
	return s
}

func newBackend(b *testing.B, servers ...balancer.Server) *balancer.Upstream {
	up, err := balancer.New(context.Background(), balancer.Config{Name: "backend", Servers: servers})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { up.Close() })
	return up
}

func getOK(rt http.RoundTripper, r *http.Request) error {
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}

// BenchmarkLoopback interleaves a bare http.Transport and trunk over the same
// server: bare-ns and trunk-ns are each one's time per request.
func BenchmarkLoopback(b *testing.B) {
	s := okServer(b)
	up := newBackend(b, balancer.Server{Addr: addr(s)})
	bare := &http.Transport{}
	b.Cleanup(bare.CloseIdleConnections)
	toServer, _ := http.NewRequest("GET", s.URL, nil)
	toName, _ := http.NewRequest("GET", "http://backend/", nil)
	interleave(b, bare, toServer, up.RoundTripper(nil), toName)
}

// BenchmarkReverseProxy is the same with an httputil.ReverseProxy before it.
func BenchmarkReverseProxy(b *testing.B) {
	s := okServer(b)
	up := newBackend(b, balancer.Server{Addr: addr(s)})
	front := func(target string, rt http.RoundTripper) (http.RoundTripper, *http.Request) {
		u, _ := url.Parse(target)
		p := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, Transport: rt})
		b.Cleanup(p.Close)
		r, _ := http.NewRequest("GET", p.URL, nil)
		return &http.Transport{}, r
	}
	bare, toBare := front(s.URL, &http.Transport{})
	trunk, toTrunk := front("http://backend", up.RoundTripper(nil))
	interleave(b, bare, toBare, trunk, toTrunk)
}

func interleave(b *testing.B, bare http.RoundTripper, toBare *http.Request, trunk http.RoundTripper, toTrunk *http.Request) {
	var spent [2]time.Duration
	n := 0
	for b.Loop() {
		start := time.Now()
		if err := getOK(bare, toBare); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if err := getOK(trunk, toTrunk); err != nil {
			b.Fatal(err)
		}
		spent[0] += middle.Sub(start)
		spent[1] += time.Since(middle)
		n++
	}
	b.ReportMetric(float64(spent[0])/float64(n), "bare-ns")
	b.ReportMetric(float64(spent[1])/float64(n), "trunk-ns")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "trunk/bare")
}

// BenchmarkKilledBackend sends idempotent requests, 64 in flight, while one of three
// backends is killed and started again every second. lost must be 0:
//
//	go test ./balancer -run xxx -bench KilledBackend -benchtime 100000x
func BenchmarkKilledBackend(b *testing.B) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	at := newPort(b)
	l, err := at.Listen()
	if err != nil {
		b.Fatal(err)
	}
	up := newBackend(b,
		balancer.Server{Addr: at.Addr(), FailTimeout: time.Second},
		balancer.Server{Addr: addr(okServer(b))}, balancer.Server{Addr: addr(okServer(b))})
	stop := make(chan struct{})
	var killer, clients sync.WaitGroup
	kills := 0
	killer.Go(func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for {
			s := &http.Server{Handler: h}
			done := make(chan struct{})
			go func() { defer close(done); s.Serve(l) }()
			select {
			case <-second.C:
			case <-stop:
				s.Close()
				<-done
				return
			}
			s.Close()
			<-done
			kills++
			if l, err = at.Listen(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	rt := up.RoundTripper(nil)
	var left, lost atomic.Int64
	left.Store(int64(b.N))
	for range 64 {
		clients.Go(func() {
			r, _ := http.NewRequest("GET", "http://backend/", nil)
			for left.Add(-1) >= 0 {
				if err := getOK(rt, r); err != nil {
					lost.Add(1)
					b.Log(err)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	killer.Wait()
	b.ReportMetric(float64(lost.Load()), "lost")
	b.ReportMetric(float64(kills), "kills")
}
