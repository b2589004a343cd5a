package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/trunklb/trunk/balancer"
)

// A wire is a way from callers to peers.
type wire struct {
	name  string
	proto protocol
	tls   bool
	// open returns what makes a call over an upstream, and what closes it.
	open func(w *world) (do func(*call), closeIdle func())
}

var wires = []wire{
	{name: "http", proto: h1, open: overHTTP(false)},
	{name: "https, HTTP/1", proto: h1, tls: true, open: overHTTP(false)},
	{name: "https, HTTP/2", proto: h2, tls: true, open: overHTTP(false)},
	{name: "http, HTTP/2", proto: h2, open: overHTTP(false)},
	{name: "http, wrapped base", proto: h1, open: overHTTP(true)},
	{name: "DialContext", proto: line, open: overDialContext},
	{name: "Start", proto: line, open: overStart},
}

// upstreamName is the host of all URLs.
const upstreamName = "backend"

// certificate is that of all servers.
var certificate, authority = func() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		panic(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{upstreamName}, NotAfter: time.Now().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(crand.Reader, of, of, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}()

func (wi *wire) serverTLS() *tls.Config {
	if !wi.tls {
		return nil
	}
	c := &tls.Config{Certificates: []tls.Certificate{certificate}}
	if wi.proto == h2 {
		c.NextProtos = []string{"h2"}
	}
	return c
}

// transport is the base of the wire.
func (wi *wire) transport() *http.Transport {
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority}, Protocols: new(http.Protocols)}
	switch {
	case wi.proto == h1:
		t.Protocols.SetHTTP1(true)
	case wi.tls:
		t.Protocols.SetHTTP2(true)
	default:
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return t
}

// overHTTP calls through RoundTripper, over a base that it clones, or wraps.
func overHTTP(wrapped bool) func(*world) (func(*call), func()) {
	return func(w *world) (func(*call), func()) {
		t := w.wire.transport()
		var base http.RoundTripper = t
		if wrapped {
			// Only the base knows then how long a connect may take.
			t.DialContext = (&net.Dialer{Timeout: patience}).DialContext
			base = struct{ http.RoundTripper }{t}
		}
		rt := w.up.RoundTripper(base)
		return func(c *call) { c.overHTTP(w, rt) }, t.CloseIdleConnections
	}
}

func (c *call) overHTTP(w *world, rt http.RoundTripper) {
	r := c.request(w)
	resp, err := rt.RoundTrip(r)
	if err != nil {
		c.err = err
		return
	}
	c.status = resp.StatusCode
	switch c.stop {
	case leavesBody:
		c.cancel() // neither read nor closed
		return
	case closesEarly:
		io.ReadFull(resp.Body, make([]byte, 1))
		resp.Body.Close()
		return
	}
	text, err := io.ReadAll(resp.Body)
	c.text, c.bodyErr = string(text), err
	resp.Body.Close()
}

// overDialContext calls over connections.
func overDialContext(w *world) (func(*call), func()) {
	return func(c *call) {
		conn, err := w.up.DialContext(c.ctx, "tcp", upstreamName+":1")
		if err != nil {
			c.err = err
			return
		}
		defer conn.Close()
		c.status = 200
		c.text, c.bodyErr = exchangeLines(c, conn)
	}, func() {}
}

// overStart calls by a loop of the caller's own.
func overStart(w *world) (func(*call), func()) {
	return func(c *call) {
		try := w.up.Start(c.ctx, balancer.Input{Key: itoa(c.id)})
		defer try.Close()
		for try.Next() {
			if c.stop == leavesBody {
				c.cancel() // without Done
				return
			}
			text, err := sendLine(c, try.Peer().Addr)
			if err == nil {
				c.status, c.text = 200, text
			}
			try.Done(err)
		}
		c.err = try.Err()
	}, func() {}
}

func sendLine(c *call, addr string) (string, error) {
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(c.ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return exchangeLines(c, conn)
}

// exchangeLines sends the call's line and reads the one that answers it.
func exchangeLines(c *call, conn net.Conn) (string, error) {
	defer context.AfterFunc(c.ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "%d\n", c.id); err != nil {
		return "", err
	}
	text, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && text != answerTo(c.id, checksum{}) {
		err = errors.New("chaos: not the answer")
	}
	return text, err
}
