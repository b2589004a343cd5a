//go:build linux

package redispatch

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Subject is a proxy under test, at work for one scenario.
type Subject interface {
	// Addr is where it listens for clients.
	Addr() string
	// Close ends it. All Records must have been added when it returns.
	Close() error
}

// Start starts a proxy for a scenario, whose servers are at addrs by their ID.
type Start func(sc *Scenario, addrs map[string]string, rec *Recorder) (Subject, error)

// Handler is a proxy that is an http.Handler.
type Handler interface {
	http.Handler
	Close() error
}

// Serve makes a Start of a function that makes a Handler: the handler is run by
// a net/http server on loopback.
func Serve(newHandler func(sc *Scenario, addrs map[string]string, rec *Recorder) (Handler, error)) Start {
	return func(sc *Scenario, addrs map[string]string, rec *Recorder) (Subject, error) {
		h, err := newHandler(sc, addrs, rec)
		if err != nil {
			return nil, err
		}
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		f := &front{handler: h, listener: firstReadListener{l}}
		f.server = &http.Server{
			Handler:     f,
			ConnContext: withConn,
			// A ReverseProxy that breaks off an answer panics, which is logged.
			ErrorLog: log.New(io.Discard, "", 0),
		}
		go f.server.Serve(f.listener)
		return f, nil
	}
}

// front is a Handler with the server that runs it.
type front struct {
	handler  Handler
	listener net.Listener
	server   *http.Server
	running  sync.WaitGroup
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.running.Add(1)
	defer f.running.Done()
	f.handler.ServeHTTP(w, r)
}

func (f *front) Addr() string { return f.listener.Addr().String() }

var errStuck = errors.New("redispatch: a request is still being handled after all connections were closed")

func (f *front) Close() error {
	// Closing the connections cancels the contexts of what still runs.
	err := f.server.Close()
	ended := make(chan struct{})
	go func() {
		f.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		err = errors.Join(err, errStuck)
	}
	return errors.Join(err, f.handler.Close())
}
