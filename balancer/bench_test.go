package balancer_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/trunklb/trunk/balancer"
)

// bare is a base that answers at once, with a body that must be closed.
type bare struct{ answer http.Response }

type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }

func (b *bare) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	b.answer = http.Response{StatusCode: 200, Body: emptyBody{}, Request: r}
	return &b.answer, nil
}

func benchmark(b *testing.B, rt http.RoundTripper, body bool) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://backend/hello", nil)
	if err != nil {
		b.Fatal(err)
	}
	var data io.ReadCloser
	if body {
		r.Method = http.MethodPut
		data = io.NopCloser(bytes.NewReader([]byte("hello")))
		r.GetBody = func() (io.ReadCloser, error) { return data, nil }
		r.ContentLength = 5
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Body = data
		resp, err := rt.RoundTrip(r)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

// BenchmarkRoundTrip is what trunk costs above its base: a stub that answers at once.
func BenchmarkRoundTrip(b *testing.B) {
	up, err := balancer.New(context.Background(), balancer.Config{
		Name:    "backend",
		Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}, {Addr: "10.0.0.3:80"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, body := range []bool{false, true} {
		name := "nobody"
		if body {
			name = "body"
		}
		b.Run(name+"/bare", func(b *testing.B) { benchmark(b, &bare{}, body) })
		b.Run(name+"/trunk", func(b *testing.B) { benchmark(b, up.RoundTripper(&bare{}), body) })
	}
}
