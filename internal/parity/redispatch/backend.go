//go:build linux

package redispatch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/trunklb/trunk/internal/port"
)

// backend is one scripted peer.
type backend struct {
	id        string
	keepalive bool
	port      *port.Port
	journal   *journal
	done      chan struct{}
	wg        sync.WaitGroup

	mu       sync.Mutex
	queue    []behaviour
	listener *net.TCPListener
	deaf     *port.Deaf
	conns    map[*net.TCPConn]bool
}

func newBackend(id string, keepalive bool, j *journal) (*backend, error) {
	p, err := port.New()
	if err != nil {
		return nil, err
	}
	return &backend{
		id: id, keepalive: keepalive, port: p, journal: j,
		done: make(chan struct{}), conns: map[*net.TCPConn]bool{},
	}, nil
}

// set replaces the queue of behaviours, and opens or closes the door with it.
func (b *backend) set(queue []string) error {
	behaviours, err := parseBehaviours(queue)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = behaviours
	switch behaviours[0].name {
	case "refuse":
		b.shut()
		return nil
	case "connect_hang":
		b.shut()
		b.deaf, err = b.port.ListenDeaf()
		return err
	}
	if b.listener != nil {
		return nil
	}
	b.shut()
	if b.listener, err = b.port.Listen(); err != nil {
		return err
	}
	b.wg.Add(1)
	go b.accept(b.listener)
	return nil
}

// shut ends the listening, whichever it is. b.mu is held.
func (b *backend) shut() {
	if b.listener != nil {
		b.listener.Close()
		b.listener = nil
	}
	if b.deaf != nil {
		b.deaf.Close()
		b.deaf = nil
	}
}

// take returns the next behaviour. The last is never used up.
func (b *backend) take() behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked()
}

func (b *backend) takeLocked() behaviour {
	next := b.queue[0]
	if len(b.queue) > 1 {
		b.queue = b.queue[1:]
	}
	return next
}

// takeReset takes a reset_on_accept, if that is next: the only behaviour that
// is taken by a connection and not by a request.
func (b *backend) takeReset() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue[0].name != "reset_on_accept" {
		return false
	}
	b.takeLocked()
	return true
}

func (b *backend) accept(l *net.TCPListener) {
	defer b.wg.Done()
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			return
		}
		b.journal.connected(b.id)
		if !b.hold(conn) {
			conn.Close()
			return
		}
		reset := b.takeReset()
		b.wg.Add(1)
		go func() {
			defer b.wg.Done()
			defer b.release(conn)
			if reset {
				b.pause(resetDelay)
				finish(conn, true)
				return
			}
			b.serve(conn)
		}()
	}
}

// hold remembers an open connection, so that close can end it.
func (b *backend) hold(conn *net.TCPConn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.done:
		return false
	default:
		b.conns[conn] = true
		return true
	}
}

func (b *backend) release(conn *net.TCPConn) {
	b.mu.Lock()
	delete(b.conns, conn)
	b.mu.Unlock()
	conn.Close()
}

// serve answers the requests of one connection.
func (b *backend) serve(conn *net.TCPConn) {
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			if !isEnd(err) {
				b.journal.broken(fmt.Sprintf("%s received what is no request: %v", b.id, err))
			}
			return
		}
		a := &arrival{
			backend: b.id, method: req.Method, path: req.RequestURI,
			bytes: unread, problem: requestProblem(req),
		}
		if a.step, err = StepOf(req); err != nil {
			a.step = unread
		}
		b.journal.arrived(a)
		if !b.act(conn, req, a, b.take()) {
			return
		}
	}
}

// isEnd reports whether a connection has merely ended: between two requests, or
// within one that the proxy gave up.
func isEnd(err error) bool {
	var netErr net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &netErr)
}

// requestProblem checks what nginx does with every request alike.
func requestProblem(req *http.Request) string {
	switch {
	case req.ProtoMajor != 1 || req.ProtoMinor != 1:
		return "sent as " + req.Proto
	case len(req.TransferEncoding) > 0:
		return "sent with a transfer encoding"
	case req.Header.Get("Connection") != "":
		return "sent with Connection: " + req.Header.Get("Connection")
	case req.Host != Host:
		return "sent for host " + req.Host
	}
	return ""
}

// pause waits as a behaviour says, but not beyond the end of the scenario.
func (b *backend) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.done:
	}
}

// close ends all connections and waits for their goroutines.
func (b *backend) close() {
	b.mu.Lock()
	close(b.done)
	b.shut()
	for conn := range b.conns {
		conn.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
	b.port.Close()
}

// finish ends a connection: with FIN, or with RST.
func finish(conn *net.TCPConn, reset bool) {
	if reset {
		// A linger of 0 drops what was not sent, and resets.
		conn.SetLinger(0)
	}
	conn.Close()
}
