package balancer

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// streamConn is a session over TCP or a unix socket.
type streamConn struct {
	net.Conn
	s *session
}

// Read implements net.Conn.
func (c *streamConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.read(n, err)
	return n, err
}

// Write implements net.Conn.
func (c *streamConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.s.check(err)
	return n, err
}

// Close closes the connection and lets the peer go.
func (c *streamConn) Close() error {
	defer c.s.end()
	return c.Conn.Close()
}

// ReadFrom implements io.ReaderFrom: the kernel may copy from a socket or a file.
func (c *streamConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// WriteTo implements io.WriterTo: the kernel may copy to a socket, but for the
// first bytes where the method wants to know of these.
func (c *streamConn) WriteTo(w io.Writer) (int64, error) {
	n := int64(0)
	if c.s.quiet.Load() {
		var err error
		if n, err = c.copyFirst(w); err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
	}
	rest, err := io.Copy(w, c.Conn)
	return n + rest, err
}

func (c *streamConn) copyFirst(w io.Writer) (int64, error) {
	p := make([]byte, 4096)
	n, err := c.Read(p)
	if n == 0 {
		return 0, err
	}
	written, failed := w.Write(p[:n])
	switch {
	case failed != nil:
		err = failed
	case written < n:
		err = io.ErrShortWrite
	}
	return int64(written), err
}

// CloseWrite signals the peer that no more will come; errors.ErrUnsupported if the
// connection cannot.
func (c *streamConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// CloseRead reads no more; errors.ErrUnsupported if the connection cannot.
func (c *streamConn) CloseRead() error {
	if half, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return half.CloseRead()
	}
	return errors.ErrUnsupported
}

// SyscallConn implements syscall.Conn; errors.ErrUnsupported if the connection
// is none.
func (c *streamConn) SyscallConn() (syscall.RawConn, error) { return rawConn(c.Conn) }

// NetConn returns the connection as it was dialled.
func (c *streamConn) NetConn() net.Conn { return c.Conn }

// packetConn is a session over UDP.
type packetConn struct {
	net.Conn
	pc net.PacketConn // the same one
	s  *session
}

// Read implements net.Conn.
func (c *packetConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.read(n, err)
	return n, err
}

// Write implements net.Conn.
func (c *packetConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.s.check(err)
	return n, err
}

// ReadFrom implements net.PacketConn.
func (c *packetConn) ReadFrom(p []byte) (int, net.Addr, error) {
	n, from, err := c.pc.ReadFrom(p)
	c.s.read(n, err)
	return n, from, err
}

// WriteTo implements net.PacketConn. The socket is connected, so that systems
// refuse it.
func (c *packetConn) WriteTo(p []byte, to net.Addr) (int, error) {
	n, err := c.pc.WriteTo(p, to)
	c.s.check(err)
	return n, err
}

// Close closes the socket and lets the peer go.
func (c *packetConn) Close() error {
	defer c.s.end()
	return c.Conn.Close()
}

// SyscallConn implements syscall.Conn; errors.ErrUnsupported if the connection
// is none.
func (c *packetConn) SyscallConn() (syscall.RawConn, error) { return rawConn(c.Conn) }

// NetConn returns the connection as it was dialled.
func (c *packetConn) NetConn() net.Conn { return c.Conn }

func rawConn(c net.Conn) (syscall.RawConn, error) {
	if raw, ok := c.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
