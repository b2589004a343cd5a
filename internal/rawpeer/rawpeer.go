// Package rawpeer is an HTTP server for tests that does to its connections what it is
// ordered to: it answers, cuts, resets, refuses streams, says GOAWAY, or is silent, over
// HTTP/1 and HTTP/2, with TLS and without. Its HTTP/2 is as much as that needs.
package rawpeer

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Proto is how a Peer speaks.
type Proto string

// The protocols.
const (
	H1  Proto = "http"     // HTTP/1.1
	TLS Proto = "https h1" // HTTP/1.1 over TLS
	H2  Proto = "h2"       // HTTP/2 over TLS
	H2C Proto = "h2c"      // HTTP/2 over TCP, by prior knowledge
)

// Protos are all of them.
var Protos = []Proto{H1, TLS, H2, H2C}

// Scheme returns the scheme of the URLs.
func (p Proto) Scheme() string {
	if p == TLS || p == H2 {
		return "https"
	}
	return "http"
}

// IsH2 reports whether it is HTTP/2.
func (p Proto) IsH2() bool { return p == H2 || p == H2C }

// Transport returns a transport that speaks p and trusts every Peer, whose name is
// Name.
func (p Proto) Transport() *http.Transport {
	t := &http.Transport{}
	if p.Scheme() == "https" {
		t.TLSClientConfig = &tls.Config{RootCAs: roots()}
		t.ForceAttemptHTTP2 = p == H2
	}
	if p == H2C {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return t
}

// A Request is one request that has arrived at a Peer. What it does is done from a single
// goroutine of its connection.
type Request struct {
	// N counts the requests of the peer, Conn its connections, and OnConn the
	// requests of this one; all from 0.
	N, Conn, OnConn int
	// Body says that the request has a body that was not read: see Config.Early.
	Body bool
	speaker
	p *Peer
}

// IsH2 reports whether it came over HTTP/2.
func (r *Request) IsH2() bool { return r.p.Proto.IsH2() }

// speaker is what a request's connection can be made to do.
type speaker interface {
	// Answer answers with a status, and a body of known length.
	Answer(status int, body string)
	// Raw writes bytes as they are: of HTTP/1, or a frame of HTTP/2.
	Raw(b string)
	// Cut ends the connection, in order.
	Cut()
	// Reset ends it by a reset.
	Reset()
	// Partly begins an answer, and ends the connection in its header.
	Partly()
	// RefuseStream ends an HTTP/2 stream with a code.
	RefuseStream(code uint32)
	// GoAway says that the connection ends, and whether the request is of those that are
	// processed. The connection is not closed.
	GoAway(covers bool, code uint32)
}

// HTTP/2's error codes.
const (
	NoError          = 0x0
	ProtocolError    = 0x1
	InternalError    = 0x2
	RefusedStream    = 0x7
	CompressionError = 0x9
)

// Config is a Peer's configuration.
type Config struct {
	// Proto is how it speaks.
	Proto Proto
	// Early calls Do when a request's header has come, not its body.
	Early bool
	// Do is called for each request. It may be called by goroutines at the same time,
	// for different connections.
	Do func(r *Request)
	// Accept, if not nil, is called for each connection before it is used; false closes it.
	Accept func(n int, c net.Conn) bool
}

// Peer is a running server.
type Peer struct {
	Config
	l     net.Listener
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	n     int
	seen  int // connections
}

// Start starts a peer, which ends with the test.
func Start(t testing.TB, c Config) *Peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Peer{Config: c, l: l, conns: map[net.Conn]struct{}{}}
	var wg sync.WaitGroup
	wg.Go(func() { p.serve(&wg) })
	t.Cleanup(func() {
		l.Close()
		p.Close()
		wg.Wait()
	})
	return p
}

// Addr returns the peer's address.
func (p *Peer) Addr() string { return p.l.Addr().String() }

// Requests returns how many requests have arrived.
func (p *Peer) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// Conns returns how many connections were made.
func (p *Peer) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// Close ends all connections, in order.
func (p *Peer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *Peer) serve(wg *sync.WaitGroup) {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		n := p.seen
		p.seen++
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		wg.Go(func() {
			defer func() {
				c.Close()
				p.mu.Lock()
				delete(p.conns, c)
				p.mu.Unlock()
			}()
			p.speak(n, c)
		})
	}
}

func (p *Peer) speak(n int, raw net.Conn) {
	c := raw
	if p.Proto.Scheme() == "https" {
		conf := &tls.Config{Certificates: []tls.Certificate{certificate()}}
		if p.Proto == H2 {
			conf.NextProtos = []string{"h2"}
		}
		secure := tls.Server(raw, conf)
		if secure.Handshake() != nil {
			return
		}
		c = secure
	}
	if p.Accept != nil && !p.Accept(n, c) {
		c.Close()
		return
	}
	if p.Proto.IsH2() {
		(&h2Conn{p: p, c: c, raw: raw, n: n}).run()
		return
	}
	p.speakH1(n, c, raw)
}

// arrived counts a request, and does with it what the test wants.
func (p *Peer) arrived(conn, onConn int, body bool, s speaker) {
	p.mu.Lock()
	n := p.n
	p.n++
	p.mu.Unlock()
	p.Do(&Request{N: n, Conn: conn, OnConn: onConn, Body: body, speaker: s, p: p})
}

func (p *Peer) speakH1(n int, c, raw net.Conn) {
	br := bufio.NewReader(c)
	for i := 0; ; i++ {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if !p.Early {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
		}
		s := &h1{c: c, raw: raw}
		p.arrived(n, i, p.Early && r.Body != http.NoBody, s)
		if s.ended {
			return
		}
	}
}

// reset closes a connection so that its peer gets a reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}
