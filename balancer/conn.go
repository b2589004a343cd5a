package balancer

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection to a peer. It limits the time between two writes, and records
// what happened on the wire, by which a failed try is judged (judge.go).
type conn struct {
	net.Conn
	end  *endpoint
	send time.Duration

	// writes counts the attempts to write, and unwritten is the number of the one that failed
	// with nothing written. cut says that the peer's side has ended the connection, and broken
	// is the first error that said so.
	writes, unwritten atomic.Int64
	cut               atomic.Bool
	broken            atomic.Pointer[error]
	// counted says that its end was counted as a failure of the peer.
	counted atomic.Bool

	// rider is the try that has the connection to itself, as in HTTP/1; nil: none.
	rider atomic.Pointer[sending]
	// streams counts the tries that share it now, as in HTTP/2, and taken all that ever did.
	streams, taken atomic.Int64

	// unreadable is closed when no more can be read from it.
	unreadable chan struct{}
	once       sync.Once
}

func newConn(c net.Conn, end *endpoint, send time.Duration) *conn {
	return &conn{Conn: c, end: end, send: send, unreadable: make(chan struct{})}
}

// graceForAnswer is how long a write that the peer refused waits for what the peer has
// sent before.
const graceForAnswer = time.Second

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.fail(err)
		c.once.Do(func() { close(c.unreadable) })
	}
	return n, err
}

// Write implements net.Conn.
//
// A peer that answers early, a 413 for instance, may then refuse the rest of the request
// by a reset. http.Transport would take the error of the write for the end of the
// try, and lose the answer. So the error waits until the answer was read.
func (c *conn) Write(p []byte) (int, error) {
	number := c.writes.Add(1)
	c.Conn.SetWriteDeadline(time.Now().Add(c.send))
	n, err := c.Conn.Write(p)
	if err != nil {
		if n == 0 {
			c.unwritten.CompareAndSwap(0, number)
		}
		c.fail(err)
		if c.rider.Load() != nil && !isTimeout(err) {
			c.awaitRead()
		}
	}
	return n, err
}

func (c *conn) awaitRead() {
	timer := time.NewTimer(graceForAnswer)
	defer timer.Stop()
	select {
	case <-c.unreadable:
	case <-timer.C:
	}
}

// fail records an error of the connection. One that our side has closed has none.
func (c *conn) fail(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	c.broken.CompareAndSwap(nil, &err)
	c.cut.Store(true)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if s := c.rider.Load(); s != nil {
		s.lost(c)
	}
	c.end.closed(c)
	c.once.Do(func() { close(c.unreadable) })
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
