//go:build linux

package redispatch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// ReverseProxy is the product under test: an httputil.ReverseProxy whose
// transport is trunk's, configured as the scenario says and then changed by
// preset.
func ReverseProxy(preset func(*Scenario, balancer.Config) balancer.Config) Start {
	return Serve(func(sc *Scenario, addrs map[string]string, rec *Recorder) (Handler, error) {
		config, err := sc.config(addrs)
		if err != nil {
			return nil, err
		}
		up, err := balancer.New(context.Background(), preset(sc, config))
		if err != nil {
			return nil, err
		}
		return &reverseProxy{
			up:       up,
			recorder: rec,
			// What came with the header can be sent again, as in nginx.
			rewind: !sc.RequestBuffering,
			proxy: &httputil.ReverseProxy{
				Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: Host}) },
				Transport: up.RoundTripper(nil),
				// A body that breaks off must not take with it what came before.
				FlushInterval: -1,
				ErrorHandler:  balancer.ErrorHandler,
				ErrorLog:      log.New(io.Discard, "", 0),
			},
		}, nil
	})
}

type reverseProxy struct {
	up       *balancer.Upstream
	recorder *Recorder
	rewind   bool
	proxy    *httputil.ReverseProxy
}

func (p *reverseProxy) Close() error { return p.up.Close() }

func (p *reverseProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	step, err := StepOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if p.rewind {
		if r, err = rewindable(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	attempts := &balancer.AttemptLog{}
	status := &statusWriter{ResponseWriter: w}
	// Also where ReverseProxy panics because an answer breaks off.
	defer func() { p.recorder.Add(step, record(attempts.Attempts(), status.code)) }()
	p.proxy.ServeHTTP(status, r.WithContext(balancer.WithLog(r.Context(), attempts)))
}

// rewindable gives a request GetBody if the whole body came with the header.
func rewindable(r *http.Request) (*http.Request, error) {
	if r.ContentLength <= 0 || int64(CameWithHeader(r)) < r.ContentLength {
		return r, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	again := r.Clone(r.Context())
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	again.Body, _ = again.GetBody()
	return again, nil
}

func record(attempts []balancer.Attempt, status int) Record {
	rec := Record{LogStatus: status}
	for _, a := range attempts {
		addr := a.Addr
		if addr == Host {
			addr = NoLive
		}
		rec.Chain = append(rec.Chain, addr)
		rec.Status = append(rec.Status, a.Status)
	}
	return rec
}

// statusWriter remembers the status, as an access log does.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// config returns the scenario's upstream block and proxy_ directives.
func (sc *Scenario) config(addrs map[string]string) (balancer.Config, error) {
	method, err := sc.method()
	if err != nil {
		return balancer.Config{}, err
	}
	retry, err := nextUpstream(sc.NextUpstream)
	if err != nil {
		return balancer.Config{}, err
	}
	retry.Tries = sc.Tries
	retry.Timeout = sc.Timeout.Duration()
	retry.ConnectTimeout = sc.ConnectTimeout.Duration()
	retry.SendTimeout = sc.SendTimeout.Duration()
	retry.ReadTimeout = sc.ReadTimeout.Duration()
	c := balancer.Config{Name: Host, Method: method, Retry: retry}
	if !sc.Keepalive {
		c.Keepalive = balancer.NoKeepalive
	}
	for _, srv := range sc.Servers {
		s := balancer.Server{
			Addr:        addrs[srv.ID],
			Weight:      srv.Weight,
			MaxConns:    srv.MaxConns,
			MaxFails:    srv.MaxFails,
			FailTimeout: time.Duration(srv.FailTimeout) * time.Second,
			Backup:      srv.Backup,
			Down:        srv.Down,
		}
		if srv.MaxFails == 0 {
			s.MaxFails = balancer.NoMaxFails
		}
		if srv.FailTimeout == 0 {
			s.FailTimeout = balancer.NoFailTimeout
		}
		c.Servers = append(c.Servers, s)
	}
	return c, nil
}

func (sc *Scenario) method() (peer.Method, error) {
	switch sc.Method {
	case "":
		return nil, nil
	case "least_conn":
		return leastconn.New(), nil
	case "hash":
		return hash.New("$arg_k"), nil
	case "ip_hash":
		return iphash.New(), nil
	case "random":
		return random.New(), nil
	}
	return nil, fmt.Errorf("redispatch: unknown method %q", sc.Method)
}

// nextUpstream reads the arguments of proxy_next_upstream.
func nextUpstream(names []string) (r balancer.Retry, err error) {
next:
	for _, name := range names {
		switch name {
		case "off":
			return balancer.Retry{Off: true}, nil
		case "non_idempotent":
			r.NonIdempotent = true
			continue
		}
		for k := balancer.KindError; k <= balancer.KindHTTP404; k <<= 1 {
			if k.String() == name {
				r.On |= k
				continue next
			}
		}
		return r, fmt.Errorf("redispatch: unknown kind %q", name)
	}
	return r, nil
}
