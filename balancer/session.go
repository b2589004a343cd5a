package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/internal/glue"
)

// DialContext connects to a peer, for protocols other than HTTP. It fits where
// clients take a function to dial: those of databases and caches, of gRPC, or
// http.Transport itself. What a connection proves about its peer is in docs/parity.md,
// section 10.
//
// network is "tcp", "udp", or one with a 4 or 6 after it; "unix" is taken as
// "tcp", and "unixgram" as "udp". A peer whose address is a unix socket is
// dialled there whatever the network. addr is ignored: it means the upstream.
// The key of hash and other input come from WithInput.
//
// A connect that fails, or takes longer than Retry.ConnectTimeout (0: 60 s), is a
// failure of the peer, and the next one is asked, as far as Retry lets it: On, Tries,
// Timeout and Budget count, and the timeouts for sending and reading do not. The
// context is for connecting only. A TCP peer that was out is in again when it takes the
// connection. Later errors say nothing about a TCP peer; a UDP peer has failed if
// reading or writing meets an error of the socket, such as a refusal by ICMP.
//
// The peer is held until the connection is closed, which the caller must do. A
// TCP or unix connection has CloseRead, CloseWrite, SyscallConn, ReadFrom and
// WriteTo, so that io.Copy can splice; a UDP one is a net.PacketConn. NetConn returns
// the connection beneath; what is read from that is not counted as a first byte.
//
// The error is a *MethodError for ip_hash, sticky and least_time header, a
// *net.OpError for another network, else an *Error with the attempts.
func (u *Upstream) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	datagram, err := isDatagram(network)
	if err == nil {
		err = u.checkStream()
	}
	if err != nil {
		return nil, err
	}
	t := &Try{ctx: ctx}
	t.d.req.Stream = true
	in, with := Input{}.ofContext(ctx)
	if err := t.d.begin(u, u.inputs.fill(in, nil), with); err != nil {
		t.end(err)
	}
	given, c := false, net.Conn(nil)
	defer func() { // also after a panic of the user's code
		if given {
			return
		}
		if c != nil {
			c.Close()
		}
		t.Close()
	}()
	for t.Next() {
		if c, err = t.d.connect(ctx, network, datagram); err != nil {
			t.Done(err)
			continue
		}
		s := newSession(t, c, datagram)
		given = true
		return s, nil
	}
	return nil, t.Err()
}

func isDatagram(network string) (bool, error) {
	switch network {
	case "tcp", "tcp4", "tcp6", "unix":
		return false, nil
	case "udp", "udp4", "udp6", "unixgram":
		return true, nil
	}
	return false, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError(network)}
}

// connect dials the held peer.
func (d *dispatch) connect(ctx context.Context, as string, datagram bool) (net.Conn, error) {
	kind, addr := network(d.end.server().Addr)
	switch {
	case kind == "unix" && datagram:
		kind = "unixgram"
	case kind == "unix":
	case !strings.HasPrefix(as, "unix"):
		kind = as
	case datagram:
		kind = "udp"
	}
	limited, cancel := context.WithTimeout(ctx, cmpDuration(d.up.retry.ConnectTimeout, defaultTimeout))
	defer cancel()
	dial := d.up.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	c, err := dial(limited, kind, addr)
	if err == nil && c == nil {
		err = errNoConn
	}
	if err == nil {
		return c, nil
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		<-ctx.Done() // the socket's timer may be a little earlier than the context's
	}
	return nil, &dialError{err}
}

// session is a connection that holds a peer. Goroutines may share it.
type session struct {
	datagram bool
	// quiet says that no first byte has come yet, and that the method wants to know.
	quiet atomic.Bool
	// broken is the first error of a datagram socket.
	broken atomic.Pointer[error]

	closed atomic.Bool

	// t belongs to its users, without a lock: the user's hooks may run in its calls,
	// and may close the connection.
	t     *Try
	mu    sync.Mutex
	users int // the open connection, and a read that reports the first byte
}

func newSession(t *Try, c net.Conn, datagram bool) net.Conn {
	s := &session{t: t, datagram: datagram, users: 1}
	d := &t.d
	if d.up.peers.Internal(glue.Key{}).Listens() {
		s.quiet.Store(true)
	}
	// A UDP socket that is connected says nothing about the peer; least_time
	// takes the time all the same.
	d.req.Stream = !datagram
	d.up.peers.Connected(&d.req)
	d.req.Stream = true
	if pc, ok := c.(net.PacketConn); ok && datagram {
		return &packetConn{Conn: c, pc: pc, s: s}
	}
	return &streamConn{Conn: c, s: s}
}

// read notes what a read has brought.
func (s *session) read(n int, err error) {
	s.check(err)
	if n > 0 && s.quiet.Load() && s.quiet.Swap(false) && s.enter() {
		defer s.leave()
		s.t.FirstByte()
	}
}

// enter keeps the peer until leave. It reports false if it is gone.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		return false
	}
	s.users++
	return true
}

// check notes the first error of a datagram socket. Deadlines, and what the
// caller does wrong, are none.
func (s *session) check(err error) {
	if err == nil || !s.datagram || isTimeout(err) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, net.ErrWriteToConnected) {
		return
	}
	s.broken.CompareAndSwap(nil, &err)
}

// end says that the connection is closed.
func (s *session) end() {
	if !s.closed.Swap(true) {
		s.leave()
	}
}

// leave lets the peer go with its last user.
func (s *session) leave() {
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if !last {
		return
	}
	d := &s.t.d
	if broken := s.broken.Load(); broken != nil {
		d.free(d.outcome(KindError, false), &Attempt{Kind: KindError, Status: statusOf(KindError), Err: *broken})
	} else {
		d.free(OK, &Attempt{Status: 200})
	}
}
