// Reverseproxy is a small real proxy: an httputil.ReverseProxy over trunk, whose
// log line shows every peer that a request was given to, as nginx's
// $upstream_addr and $upstream_status do.
//
//	go run ./examples/reverseproxy
//	go run ./examples/reverseproxy -listen :8080 10.0.0.1:80 10.0.0.2:80
//
// Without addresses it shows itself: it starts backends of its own, one of which
// answers 503 to all and one of which is dead, sends itself a few requests, and ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/trunklb/trunk/balancer"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on, where backends are given")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := show
	if flag.NArg() > 0 {
		run = func(ctx context.Context, out io.Writer) error { return serve(ctx, out, *listen, flag.Args()) }
	}
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reverseproxy:", err)
		os.Exit(1)
	}
}

// serve is the proxy, until the context ends.
func serve(ctx context.Context, out io.Writer, listen string, backends []string) error {
	up, err := newUpstream(ctx, backends)
	if err != nil {
		return err
	}
	defer up.Close()
	s := &http.Server{Addr: listen, Handler: newProxy(up, out)}
	context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		s.Shutdown(late)
	})
	fmt.Fprintln(out, "listening on", listen)
	if err := s.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func newUpstream(ctx context.Context, backends []string) (*balancer.Upstream, error) {
	c := balancer.Config{
		Name: "backend",
		Retry: balancer.Retry{
			On: balancer.KindError | balancer.KindTimeout | balancer.KindHTTP502 | balancer.KindHTTP503,
			// A body of up to a megabyte can be sent again.
			BufferBody: 1 << 20,
			// Where all have failed, the client gets what the last of them
			// said, if one said anything.
			LastAnswer: true,
		},
	}
	for _, addr := range backends {
		c.Servers = append(c.Servers, balancer.Server{Addr: addr})
	}
	return balancer.New(ctx, c)
}

// newProxy is a ReverseProxy over an upstream, with nginx's answers where all
// fails, and a log line for each request.
func newProxy(up *balancer.Upstream, out io.Writer) http.Handler {
	target := &url.URL{Scheme: "http", Host: up.Name()}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		Transport:    up.RoundTripper(nil),
		ErrorHandler: balancer.ErrorHandler,
	}
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log := new(balancer.AttemptLog)
		seen := &statusWriter{ResponseWriter: w}
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "%s %s %d upstream_addr=%q upstream_status=%q upstream_response_time=%q\n",
				r.Method, r.URL.Path, seen.status, log.Addr(), log.Status(), log.ResponseTime())
		}()
		proxy.ServeHTTP(seen, r.WithContext(balancer.WithLog(r.Context(), log)))
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush and hijack.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// show runs the proxy over backends of its own.
func show(ctx context.Context, out io.Writer) error {
	var backends []string
	for _, status := range []int{200, 200, 503} {
		l, err := listenAnywhere()
		if err != nil {
			return err
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			fmt.Fprintln(w, "hello")
		})}
		go s.Serve(l)
		defer s.Close()
		backends = append(backends, l.Addr().String())
	}
	dead, err := listenAnywhere()
	if err != nil {
		return err
	}
	dead.Close()
	backends = append(backends, dead.Addr().String())
	fmt.Fprintf(out, "two backends that answer, %s; one that says 503, %s; one that is dead, %s\n\n",
		strings.Join(backends[:2], " and "), backends[2], backends[3])

	up, err := newUpstream(ctx, backends)
	if err != nil {
		return err
	}
	defer up.Close()
	l, err := listenAnywhere()
	if err != nil {
		return err
	}
	front := &http.Server{Handler: newProxy(up, out)}
	go front.Serve(l)
	defer front.Close()
	for _, method := range []string{"GET", "GET", "GET", "GET", "POST", "GET"} {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+l.Addr().String()+"/hello", nil)
		if err != nil {
			return err
		}
		if method == "POST" {
			r.Body = io.NopCloser(strings.NewReader("a body"))
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	// Until the proxy has written its last line.
	if err := front.Shutdown(ctx); err != nil {
		return err
	}
	fmt.Fprint(out, "\nEvery request was answered with 200: those that met the bad backends went on, and\nthese are left alone for ten seconds.\n")
	return nil
}
