package balancer

import (
	"context"
	"errors"
	"net"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"
)

// A dialError is a connection that did not come about: nothing was sent.
type dialError struct{ err error }

// errNoConn is a dial function that returns neither.
var errNoConn = errors.New("the dial function returned (nil, nil)")

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dialFunc is http.Transport.DialContext.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// plainDial makes a dialFunc of the deprecated Transport.Dial; nil: the standard one.
func plainDial(dial func(network, addr string) (net.Conn, error)) dialFunc {
	if dial == nil {
		return (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	return func(_ context.Context, network, addr string) (net.Conn, error) { return dial(network, addr) }
}

// dialer dials one peer, whatever address it is asked for.
type dialer struct {
	end           *endpoint
	dial          dialFunc
	connect, send time.Duration
}

// DialContext is for http.Transport.
func (d *dialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	network, addr := network(d.end.server().Addr)
	ctx, cancel := context.WithTimeout(ctx, d.connect)
	defer cancel()
	var c net.Conn
	err := caught("the dial function", func() (err error) { // the goroutine is net/http's
		c, err = d.dial(ctx, network, addr)
		return err
	})
	if err == nil && c == nil {
		err = errNoConn
	}
	if err != nil {
		return nil, &dialError{err}
	}
	own := &conn{Conn: c, end: d.end, send: d.send}
	if !d.end.opened(own) {
		c.Close()
		return nil, &dialError{errRetired}
	}
	return own, nil
}

// errRetired: a transport was still dialling for a request that has long got
// another connection, and the peer was removed, or the upstream closed, in the meantime.
var errRetired = errors.New("trunk: the peer was removed, or the upstream closed")

// conn is a connection to a peer. It limits the time between two writes, and
// knows how it ended.
type conn struct {
	net.Conn
	end  *endpoint
	send time.Duration
	// cut says that the peer's side ended it.
	cut atomic.Bool
	// counted says that its breaking was counted as a failure of the peer.
	counted atomic.Bool
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) && !c.cut.Swap(true) {
		c.end.breaks.Add(1)
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.Conn.SetWriteDeadline(time.Now().Add(c.send))
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.end.closed(c)
	return c.Conn.Close()
}

// CloseWrite ends one direction of an upgraded connection.
func (c *conn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return errors.ErrUnsupported
}

// NetConn returns the connection as it was dialled.
func (c *conn) NetConn() net.Conn { return c.Conn }

// connOf finds the conn beneath what httptrace shows, which may be TLS; nil if there
// is none.
func connOf(c net.Conn) *conn {
	for c != nil {
		if own, ok := c.(*conn); ok {
			return own
		}
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = inner.NetConn()
	}
	return nil
}

// isDial reports whether err says that no connection came about, also where a
// dialler of another's had it.
func isDial(err error) bool {
	var own *dialError
	var op *net.OpError
	return errors.As(err, &own) || errors.As(err, &op) && op.Op == "dial"
}

// streamError has the shape of net/http's HTTP/2 error for one request, as which
// that lets itself be found by errors.As.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream error" }

// isStream reports whether err is of one HTTP/2 request, not of its connection.
func isStream(err error) bool {
	var s streamError
	return errors.As(err, &s)
}

// isInvalidHeader reports whether err is how net/http calls what is no HTTP
// response. Its own types for that are not exported.
func isInvalidHeader(err error) bool {
	var proto textproto.ProtocolError
	if errors.As(err, &proto) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, "malformed HTTP ") || strings.Contains(text, "server response headers exceeded") ||
		strings.Contains(text, "bad Content-Length") || strings.Contains(text, "unsupported transfer encoding")
}
