package balancer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/rawpeer"
)

// FuzzAnswer lets a peer answer anything, over HTTP/1 or HTTP/2, and end the connection.
// Whatever it is, the request comes to an end, with that peer's answer or with the one of
// the healthy peer beside it, and no peer stays held.
func FuzzAnswer(f *testing.F) {
	const h1, h2 = false, true
	settings := rawpeer.Frame(4, 0, 0, "")
	for _, answer := range []string{
		"", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "HTTP/1.1 200 OK\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n", "HTTP/1.1 503 x\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://a:80/\r\n\r\n", "HTTP/1.1 xyz\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 2", "garbage\r\n\r\n",
	} {
		f.Add(h1, answer)
	}
	for _, answer := range []string{
		"", settings, settings + rawpeer.Frame(1, 5, 1, "\x88"), settings + rawpeer.Frame(1, 4, 1, "\x88") + rawpeer.Frame(0, 1, 1, "ok"), settings + rawpeer.Frame(1, 0, 1, "\x88"),
		settings + rawpeer.Frame(3, 0, 1, "\x00\x00\x00\x07"), settings + rawpeer.Frame(3, 0, 1, "\x00\x00\x00\x02"), settings + rawpeer.Frame(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00"),
		settings + rawpeer.Frame(7, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x01"), settings + rawpeer.Frame(1, 5, 1, "\x80"), "HTTP/1.1 400 Bad Request\r\n\r\n",
	} {
		f.Add(h2, answer)
	}
	const all = balancer.KindError | balancer.KindTimeout | balancer.KindInvalidHeader
	f.Fuzz(func(t *testing.T, overH2 bool, answer string) {
		proto, good := rawpeer.H1, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
		if overH2 {
			proto, good = rawpeer.H2C, settings+rawpeer.Frame(1, 4, 1, "\x88")+rawpeer.Frame(0, 1, 1, "good")
		}
		base := proto.Transport()
		base.DialContext = func(_ context.Context, _, addr string) (net.Conn, error) {
			if addr == "a:80" {
				return newScripted(answer), nil
			}
			return newScripted(good), nil
		}
		up, err := balancer.New(context.Background(), balancer.Config{Name: "backend", Servers: servers("a:80 b:80"), Resolver: balancer.NoLookup,
			Retry: balancer.Retry{On: all}})
		require.NoError(t, err)
		defer up.Close()
		r, err := http.NewRequest("GET", "http://backend/", nil)
		require.NoError(t, err)
		resp, err := up.RoundTripper(base).RoundTrip(r)
		var body []byte
		if err == nil {
			body, _ = io.ReadAll(resp.Body)
			resp.Body.Close()
		} else {
			// A peer may find fault with the request; then no other is asked.
			require.True(t, overH2 && strings.Contains(err.Error(), "GOAWAY"), "%v", err)
		}
		s := up.Snapshot()
		require.Zero(t, s.Peers[0].Conns+s.Peers[1].Conns)
		require.Zero(t, s.Peers[1].Counts.Failed, "b is healthy")
		if s.Peers[1].Counts.Gets > 0 {
			require.Equal(t, "good", string(body))
		}
	})
}

// scripted is a connection of which the peer's side has been written before. It can be read
// when something was written to it, and ends then.
type scripted struct {
	answer  *strings.Reader
	written chan struct{}
	once    sync.Once
}

func newScripted(answer string) *scripted {
	return &scripted{answer: strings.NewReader(answer), written: make(chan struct{})}
}

func (c *scripted) Read(p []byte) (int, error) {
	<-c.written
	return c.answer.Read(p)
}

func (c *scripted) Write(p []byte) (int, error) {
	// Of HTTP/2 the answer is read after the request, not after the settings.
	if !bytes.HasPrefix(p, []byte("PRI")) {
		c.once.Do(func() { close(c.written) })
	}
	return len(p), nil
}

func (c *scripted) Close() error {
	c.once.Do(func() { close(c.written) })
	return nil
}

func (*scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*scripted) SetDeadline(time.Time) error      { return nil }
func (*scripted) SetReadDeadline(time.Time) error  { return nil }
func (*scripted) SetWriteDeadline(time.Time) error { return nil }

// FuzzChanges lets bytes say what happens to an upstream: servers that come, go and change,
// tries that get, answer, fail and are given up, a clock that goes on, a Close. The account
// of the snapshot always adds up, what is held is what tries hold, a try never gets a peer
// that the set does not have, and at the end none is held.
func FuzzChanges(f *testing.F) {
	f.Add([]byte{7, 0, 1, 2, 3, 10, 0})
	f.Add([]byte{3, 1, 1, 0, 7, 6, 1, 1, 2, 2, 0, 0, 4, 20, 1, 3, 3, 0, 2, 0})
	f.Add([]byte{15, 1, 0, 1, 1, 1, 2, 0, 5, 1, 2, 0, 3, 0, 1, 2, 1, 7, 0, 1, 3, 3, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		now := newClock()
		up, err := balancer.New(context.Background(), balancer.Config{Name: "backend", Servers: fuzzServers(1), Resolver: balancer.NoLookup, Clock: now.read})
		require.NoError(t, err)
		var tries []*balancer.Try
		closed := false
		next := func() byte {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return b
		}
		try := func() *balancer.Try {
			i := int(next())
			if len(tries) == 0 {
				tries = append(tries, up.Start(context.Background(), balancer.Input{}))
			}
			return tries[i%len(tries)]
		}
		for len(data) > 0 {
			switch next() % 8 {
			case 0:
				list := fuzzServers(next())
				switch err := up.Update(context.Background(), list); {
				case closed:
					require.ErrorIs(t, err, balancer.ErrClosed)
				case !slices.ContainsFunc(list, func(s balancer.Server) bool { return !s.Backup }):
					require.ErrorAs(t, err, new(*balancer.ConfigError))
				default:
					require.NoError(t, err)
				}
			case 1:
				tries = append(tries, up.Start(context.Background(), balancer.Input{Key: "k"}))
				fallthrough
			case 2:
				if tr := try(); tr.Next() {
					require.False(t, closed)
					addr := tr.Peer().Addr
					require.True(t, slices.ContainsFunc(up.Servers(), func(s balancer.Server) bool { return s.Addr == addr }), addr)
				}
			case 3:
				tr := try()
				held := tr.Peer().Addr != ""
				tr.Done([]error{nil, io.EOF, balancer.ErrNextPeer, balancer.ErrAbandoned}[next()%4])
				require.True(t, held || errors.Is(tr.Err(), balancer.ErrNotHeld))
			case 4:
				now.advance(time.Duration(next()) * time.Second / 2)
			case 5:
				try().Close()
			case 6:
				_ = try().Header()
				_ = try().Connected()
			case 7:
				if next() == 0 { // seldom, for it ends everything
					require.NoError(t, up.Close())
					closed = true
				}
			}
			var held int64
			for _, tr := range tries {
				if tr.Peer().Addr != "" {
					held++
				}
			}
			requireAddsUp(t, up.Snapshot(), held)
		}
		for _, tr := range tries {
			tr.Close()
		}
		requireAddsUp(t, up.Snapshot(), 0)
		require.NoError(t, up.Close())
	})
}

// fuzzServers are four servers at most: the low bits say which, the high ones how they are.
func fuzzServers(b byte) (list []balancer.Server) {
	for i, addr := range []string{"a:80", "b:80", "c:80", "d:80"} {
		if b>>i&1 == 1 {
			list = append(list, balancer.Server{Addr: addr, Weight: 1 + i*int(b>>4&1), Backup: i > 1 && b>>5&1 == 1, MaxConns: int(b >> 6 & 1), Down: i == 0 && b>>7 == 1})
		}
	}
	return list
}

func requireAddsUp(t *testing.T, s balancer.Snapshot, held int64) {
	t.Helper()
	var conns int64
	for _, p := range s.Peers {
		conns += p.Conns
	}
	require.Equal(t, held, conns)
	require.Equal(t, s.Total.Gets, s.Total.OK+s.Total.Failed+s.Total.Next+s.Total.Abandoned+uint64(held))
	require.Equal(t, s.Requests+s.Retries, s.Total.Gets+s.NoLivePeers)
}
