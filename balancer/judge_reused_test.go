package balancer

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A connection that was kept alive and is closed before the request could be written proves
// nothing of its peer, be it the first or the tenth: the peer is asked again, any method's
// request. Only a new connection proves something.
func TestUnwrittenOnAKeptAliveConnection(t *testing.T) {
	for _, tc := range []struct {
		name          string
		p             progress
		cut           bool
		broken        bool // the first write fails with nothing written
		err           error
		second        bool
		blame, repeat bool
	}{
		{name: "cut", p: progress{reused: true}, cut: true, err: io.EOF, repeat: true},
		{name: "cut, a second time", p: progress{reused: true}, cut: true, err: io.EOF, second: true, repeat: true},
		{name: "closed by our side, a second time", p: progress{reused: true}, err: net.ErrClosed, second: true, repeat: true},
		{name: "about to be sent again, a second time", p: progress{reused: true, repeats: true}, cut: true, err: errRepeat, second: true, repeat: true},
		{name: "the write fails", p: progress{reused: true, headers: true, writeErr: io.ErrClosedPipe}, broken: true, err: io.ErrClosedPipe, second: true, repeat: true},
		{name: "new, the write fails", p: progress{headers: true, writeErr: io.ErrClosedPipe}, broken: true, err: io.ErrClosedPipe, blame: true},
		{name: "new, cut", cut: true, err: io.EOF, blame: true},
		{name: "new, cut, a second time", cut: true, err: io.EOF, second: true, blame: true},
		{name: "new, closed by our side", err: net.ErrClosed, repeat: true},
		{name: "new, closed by our side, a second time", err: net.ErrClosed, second: true, blame: true},
		{name: "new, about to be sent again", p: progress{repeats: true}, cut: true, err: errRepeat, repeat: true},
		{name: "new, about to be sent again, a second time", p: progress{repeats: true}, cut: true, err: errRepeat, second: true, blame: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.p.got, tc.p.conn = true, newConn(brokenConn{}, nil, 0)
			tc.p.conn.cut.Store(tc.cut)
			if tc.broken {
				tc.p.conn.Write([]byte("GET"))
			}
			require.False(t, tc.p.written())
			require.Equal(t, ruling{kind: KindError, unsent: true, blame: tc.blame, again: tc.repeat}, tc.p.judgeUnwritten(tc.err, false, tc.second))
		})
	}
}

// A transport that finds only closed connections, and has dialled none, proves nothing, neither
// of the peer nor of the request.
func TestOnlyClosedConnections(t *testing.T) {
	p := progress{asked: maxAsked + 1, repeats: true}
	require.Equal(t, ruling{kind: KindError | KindConnect, unsent: true, again: true}, p.judgeConnect(errRepeat, false, true))
}

// brokenConn is a connection whose writes fail with an error of its own.
type brokenConn struct{ net.Conn }

func (brokenConn) Write([]byte) (int, error)        { return 0, io.ErrClosedPipe }
func (brokenConn) SetWriteDeadline(time.Time) error { return nil }
