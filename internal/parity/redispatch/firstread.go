//go:build linux

package redispatch

import (
	"bytes"
	"context"
	"net"
	"net/http"
)

// CameWithHeader returns how many bytes of a request's body came together with
// its header, in one read. nginx holds these in its header buffer, so it can send
// them again also where it does not buffer bodies; a Go handler cannot ask.
func CameWithHeader(r *http.Request) int {
	if c, ok := r.Context().Value(connKey{}).(*firstReadConn); ok {
		return c.body
	}
	return 0
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

type firstReadListener struct{ *net.TCPListener }

func (l firstReadListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return &firstReadConn{TCPConn: c}, nil
}

// firstReadConn remembers how much of a body its first read brought. The server
// reads a whole header before it calls a handler, so body is set by then. The
// server needs the CloseWrite of a TCPConn for an orderly end.
type firstReadConn struct {
	*net.TCPConn
	read bool
	body int
}

func (c *firstReadConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if !c.read && n > 0 {
		c.read = true
		if _, body, whole := bytes.Cut(p[:n], []byte("\r\n\r\n")); whole {
			c.body = len(body)
		}
	}
	return n, err
}
