package main

import (
	"crypto/tls"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/trunklb/trunk/internal/port"
)

// protocol is what a server speaks.
type protocol uint8

const (
	h1 protocol = iota
	h2
	line // one line each way, for connections
)

// A greeting is what a server does with a connection before any request.
type greeting uint8

const (
	serves greeting = iota
	closes
	resets
	keepsSilent
	babbles
)

// A server is one peer. What it does with its n-th connection and its n-th request was drawn
// before; a healthy one does only what is innocent.
type server struct {
	name    string
	ip      string
	port    *port.Port
	shared  bool // the port is not its own
	proto   protocol
	tls     *tls.Config // nil: none
	healthy bool
	// always is what a server that is not healthy does with each request; nil: now this, now that.
	always *deed
	seed   uint64
	ledger *ledger

	mu       sync.Mutex
	listener *net.TCPListener
	deaf     *port.Deaf
	conns    map[net.Conn]bool
	accepted int
	requests int
	did      map[*deed]int
	wg       sync.WaitGroup
}

// slow is how long a server waits for a client that does not go on.
const slow = 5 * time.Second

func (s *server) addr() string { return net.JoinHostPort(s.ip, itoa(s.port.Number())) }

// start lets the server be reached.
func (s *server) start() error {
	ln, err := s.port.ListenAt(s.ip)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listener = ln
	s.mu.Unlock()
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(c.(*net.TCPConn)) })
		}
	})
	return nil
}

// die closes the listener and all connections: those that come now are refused.
func (s *server) die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
	if s.deaf != nil {
		s.deaf.Close()
		s.deaf = nil
	}
	for c := range s.conns {
		c.Close()
	}
}

// deafen lets connections get no answer at all, as where a backlog is full.
func (s *server) deafen() {
	s.die()
	if s.shared {
		return // all the others would be deaf, too
	}
	if deaf, err := s.port.ListenDeaf(); err == nil {
		s.mu.Lock()
		s.deaf = deaf
		s.mu.Unlock()
	}
}

// dropIdle closes all connections on which no request is going on, as a server that
// is being reloaded. Only those of HTTP/1 are known to be idle.
func (s *server) dropIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, busy := range s.conns {
		if !busy {
			c.Close()
		}
	}
	s.did[cutsIdle]++
}

// stop ends the server, with all its goroutines.
func (s *server) stop() {
	s.die()
	s.wg.Wait()
}

func (s *server) serve(c *net.TCPConn) {
	var conn net.Conn = c
	s.mu.Lock()
	if s.listener == nil {
		s.mu.Unlock()
		c.Close()
		return
	}
	n := s.accepted
	s.accepted++
	if s.tls != nil {
		conn = tls.Server(c, s.tls)
	}
	s.conns[conn] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
		conn.Close()
	}()
	switch s.greeting(n) {
	case closes:
		return
	case resets:
		c.SetLinger(0)
		return
	case keepsSilent:
		drain(c)
		return
	case babbles:
		c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
		drain(c)
		return
	}
	if t, ok := conn.(*tls.Conn); ok {
		c.SetDeadline(time.Now().Add(slow))
		if t.Handshake() != nil {
			return
		}
		c.SetDeadline(time.Time{})
	}
	switch s.proto {
	case h1:
		s.serveH1(conn, c)
	case h2:
		s.serveH2(conn, c)
	case line:
		s.serveLine(conn, c)
	}
}

// busy notes whether a request is going on.
func (s *server) busy(c net.Conn, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.conns[c]; has {
		s.conns[c] = is
	}
}

func (s *server) greeting(n int) greeting {
	if s.healthy || s.always != nil {
		return serves
	}
	r := rand.New(rand.NewPCG(s.seed, uint64(n)<<1|1))
	switch k := r.IntN(60); {
	case k == 0:
		return keepsSilent
	case k < 10:
		return greeting(1 + k%2)
	case k < 13 && s.proto != line:
		return babbles
	}
	return serves
}

// next draws what the server does with a request, and writes it down.
func (s *server) next(id int) *deed {
	s.mu.Lock()
	n := s.requests
	s.requests++
	s.mu.Unlock()
	d := s.draw(rand.New(rand.NewPCG(s.seed, uint64(n)<<1)))
	if d == refusesOnce && s.ledger.refused(id, s) {
		d = answers
	}
	s.ledger.add(id, mark{s, d})
	s.mu.Lock()
	s.did[d]++
	s.mu.Unlock()
	return d
}

func (s *server) draw(r *rand.Rand) *deed {
	switch {
	case s.always != nil:
		return s.always
	case s.healthy && r.IntN(25) > 0, !s.healthy && r.IntN(3) == 0:
		return answers
	}
	of := deedsOf(s.proto, s.healthy)
	d := of[r.IntN(len(of))]
	if d.rare && r.IntN(10) > 0 {
		return answers
	}
	return d
}

// hasDone reports whether the server has done one of some deeds.
func (s *server) hasDone(deeds ...*deed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(deeds, func(d *deed) bool { return s.did[d] > 0 })
}

// drain reads until the client closes, or for a while.
func drain(c net.Conn) {
	c.SetReadDeadline(time.Now().Add(slow))
	var b [4096]byte
	for {
		if _, err := c.Read(b[:]); err != nil {
			return
		}
	}
}
