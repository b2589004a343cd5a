package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/sticky"
)

func Example() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s%s", r.Host, r.URL.Path)
	}))
	defer backend.Close()

	up, err := nginxconf.NewUpstream(context.Background(), `upstream backend {
	    least_conn;
	    server `+backend.Listener.Addr().String()+` weight=5 max_fails=3 fail_timeout=30s;
	    server 127.0.0.2:9;
	    server 127.0.0.3:9 backup;
	}`)
	if err != nil {
		panic(err)
	}
	defer up.Close()
	client := &http.Client{Transport: up.RoundTripper(nil)}
	resp, err := client.Get("http://backend/hello")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body))
	// Output: backend/hello
}

func ExampleNew() {
	up, err := balancer.New(context.Background(), balancer.Config{
		Name:   "backend",
		Method: leastconn.New(), // nil: round robin
		Sticky: sticky.Cookie{Name: "srv"},
		Servers: []balancer.Server{
			{Addr: "10.0.0.1:8080", Weight: 5},
			{Addr: "10.0.0.2:8080", MaxFails: balancer.NoMaxFails},
		},
	})
	if err != nil {
		panic(err)
	}
	defer up.Close()
	fmt.Println(up.Name(), len(up.Snapshot().Peers))
	// Output: backend 2
}

func ExampleUpstream_Start() {
	up, err := balancer.New(context.Background(), balancer.Config{
		Servers: []balancer.Server{{Addr: "10.0.0.1:6379"}, {Addr: "10.0.0.2:6379"}},
	})
	if err != nil {
		panic(err)
	}
	defer up.Close()

	send := func(addr string) error {
		if addr == "10.0.0.1:6379" {
			return errors.New("connection refused")
		}
		fmt.Println("sent to", addr)
		return nil
	}
	try := up.Start(context.Background(), balancer.Input{Key: "user-42"})
	defer try.Close()
	for try.Next() {
		try.Done(send(try.Peer().Addr))
	}
	fmt.Println(try.Err(), try.Attempts()[0].Err)
	// Output:
	// sent to 10.0.0.2:6379
	// <nil> connection refused
}

// A ReverseProxy that answers as nginx would when all fails.
func ExampleErrorHandler() {
	up, err := balancer.New(context.Background(), balancer.Config{
		Name:    "backend",
		Servers: []balancer.Server{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}}, // nobody listens there
	})
	if err != nil {
		panic(err)
	}
	defer up.Close()
	target, _ := url.Parse("http://backend")
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:    up.RoundTripper(nil),
		ErrorHandler: balancer.ErrorHandler,
	}

	log := new(balancer.AttemptLog)
	r := httptest.NewRequest("GET", "/", nil)
	w := httptest.NewRecorder()
	proxy.ServeHTTP(w, r.WithContext(balancer.WithLog(r.Context(), log)))
	fmt.Printf("%d upstream_addr=%q upstream_status=%q\n", w.Code, log.Addr(), log.Status())
	// Output: 502 upstream_addr="127.0.0.1:1, 127.0.0.1:2" upstream_status="502, 502"
}

// An application that answers 504 by itself, for one of its pages, takes healthy
// servers out in nginx once http_504 is passed on. Counts parts what is passed on from
// what counts: here only a connection that fails does.
func ExampleRetry_counts() {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/report" {
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	}))
	defer app.Close()
	addr := app.Listener.Addr().String()

	for _, retry := range []balancer.Retry{
		{On: balancer.KindError | balancer.KindHTTP504},
		{On: balancer.KindError | balancer.KindHTTP504, Counts: balancer.KindError},
	} {
		up, err := balancer.New(context.Background(), balancer.Config{
			Name:    "app",
			Servers: []balancer.Server{{Addr: addr}, {Addr: addr}, {Addr: addr}},
			Retry:   retry,
		})
		if err != nil {
			panic(err)
		}
		client := &http.Client{Transport: up.RoundTripper(nil)}
		resp, err := client.Get("http://app/report")
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		failed := 0
		for _, s := range up.Snapshot().Peers {
			failed += int(s.Fails)
		}
		fmt.Printf("counts %q: /report is a %d, and %d of 3 servers are out\n", retry.Counts, resp.StatusCode, failed)
		up.Close()
	}
	// Output:
	// counts "": /report is a 504, and 2 of 3 servers are out
	// counts "error": /report is a 504, and 0 of 3 servers are out
}
