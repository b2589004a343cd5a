package balancer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// echo is a server that sends back what it reads, with its own name first.
func echo(t *testing.T, network, listen, name string) string {
	l, err := net.Listen(network, listen)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.WriteString(c, name)
				io.Copy(c, c)
			}()
		}
	}()
	if network == "unix" {
		return "unix:" + listen
	}
	return l.Addr().String()
}

func TestDialContext(t *testing.T) {
	dead := refusing(t)
	path := filepath.Join(t.TempDir(), "s")
	up := newUpstream(t, balancer.Config{Servers: servers(dead + " " + echo(t, "tcp", "127.0.0.1:0", "b") + " " + echo(t, "unix", path, "c"))})
	var log balancer.AttemptLog
	for _, want := range []string{"b", "c", "b", "c"} {
		c, err := up.DialContext(balancer.WithLog(context.Background(), &log), "tcp", "whatever:1")
		require.NoError(t, err)
		_, err = io.WriteString(c, "-hello")
		require.NoError(t, err)
		require.NoError(t, c.(interface{ CloseWrite() error }).CloseWrite())
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, want+"-hello", string(got))
		held := 0
		for _, s := range up.Snapshot().Peers {
			held += int(s.Conns)
		}
		require.Equal(t, 1, held)
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.Close(), net.ErrClosed)
		for _, s := range up.Snapshot().Peers {
			require.Zero(t, s.Conns)
		}
	}
	require.EqualValues(t, 1, up.Snapshot().Peers[0].Fails, "it was asked once, and is out")
	require.Equal(t, "502, 200, 200, 200, 200", log.Status())
}

// When all fail the error has the attempts; when the caller goes, no peer is blamed.
func TestDialContextFails(t *testing.T) {
	a, b := refusing(t), refusing(t)
	up := newUpstream(t, balancer.Config{Servers: servers(a + " " + b)})
	_, err := up.DialContext(context.Background(), "tcp", "")
	var e *balancer.Error
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Attempts, 2)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = up.DialContext(context.Background(), "tcp", "")
	require.ErrorIs(t, err, balancer.ErrNoLivePeers)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, mode := range []string{"error", "panic", "gone"} {
		up = newUpstream(t, balancer.Config{Servers: servers("a b"), Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
			switch mode {
			case "panic":
				panic("mine")
			case "gone":
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, errors.New("no route")
		}, Retry: balancer.Retry{Off: true}})
		func() {
			defer func() { _ = recover() }()
			_, err = up.DialContext(ctx, "tcp", "")
		}()
		fails := map[string]int64{"error": 1}[mode]
		require.Equal(t, fails, up.Snapshot().Peers[0].Fails, mode)
		require.Zero(t, up.Snapshot().Peers[0].Conns, mode)
		require.Zero(t, up.Snapshot().Peers[1].Fails, "nothing is passed on")
	}
	require.ErrorIs(t, err, context.Canceled)
}

// A connect that takes too long is a timeout of the peer; the caller's own short
// deadline is not.
func TestDialContextTimeouts(t *testing.T) {
	hang := func(ctx context.Context, _, addr string) (net.Conn, error) {
		if addr == "b" {
			c, _ := net.Pipe()
			return c, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	up := newUpstream(t, balancer.Config{Servers: servers("a b"), Dial: hang, Retry: balancer.Retry{ConnectTimeout: time.Millisecond}})
	c, err := up.DialContext(context.Background(), "tcp", "")
	require.NoError(t, err)
	require.EqualValues(t, 1, up.Snapshot().Peers[0].Fails)
	// A connection that is none of the kernel's has what can be had.
	require.ErrorIs(t, c.(interface{ CloseWrite() error }).CloseWrite(), errors.ErrUnsupported)
	_, err = c.(syscall.Conn).SyscallConn()
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, c.Close())

	up = newUpstream(t, balancer.Config{Servers: servers("a b"), Dial: hang})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = up.DialContext(ctx, "tcp", "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, up.Snapshot().Peers[0].Fails)
}

// A TCP peer is live again at the connect, not at the end of the session; a UDP one
// is not.
func TestLiveAgainAtTheConnect(t *testing.T) {
	for network, want := range map[string]int64{"tcp": 0, "udp": 1} {
		ck, fail := newClock(), true
		up := newUpstream(t, balancer.Config{Servers: servers("a b"), Clock: ck.read, Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
			if fail && addr == "a" {
				return nil, errRefused
			}
			c, _ := net.Pipe()
			return c, nil
		}})
		dial := func() net.Conn {
			c, err := up.DialContext(context.Background(), network, "")
			require.NoError(t, err)
			return c
		}
		dial().Close()
		require.EqualValues(t, 1, up.Snapshot().Peers[0].Fails)
		fail = false
		ck.advance(11 * time.Second)
		c := dial()
		for up.Snapshot().Peers[0].Conns == 0 {
			c.Close()
			c = dial()
		}
		require.Equal(t, want, up.Snapshot().Peers[0].Fails, network)
		c.Close()
		require.Zero(t, up.Snapshot().Peers[0].Fails)
	}
}

// UDP: a refusal by ICMP is the peer's failure, when the session ends.
func TestUDP(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer pc.Close()
	go func() {
		p := make([]byte, 100)
		for {
			n, from, err := pc.ReadFrom(p)
			if err != nil {
				return
			}
			pc.WriteTo(p[:n], from)
		}
	}()
	gone, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	gone.Close()
	up := newUpstream(t, balancer.Config{Servers: servers(pc.LocalAddr().String() + " " + gone.LocalAddr().String()), Method: leasttime.New(leasttime.FirstByte)})
	for i, want := range []error{nil, syscall.ECONNREFUSED} {
		c, err := up.DialContext(context.Background(), "udp", "")
		require.NoError(t, err)
		require.Implements(t, (*net.PacketConn)(nil), c)
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = c.Write([]byte("x"))
		require.NoError(t, err)
		p := make([]byte, 10)
		_, _, err = c.(net.PacketConn).ReadFrom(p)
		require.ErrorIs(t, err, want)
		require.NoError(t, c.SetReadDeadline(time.Unix(1, 0)))
		_, err = c.Read(p)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Zero(t, up.Snapshot().Peers[i].Fails, "the session is not over")
		require.EqualValues(t, 1, up.Snapshot().Peers[i].Conns)
		require.NoError(t, c.Close())
		require.EqualValues(t, i, up.Snapshot().Peers[i].Fails)
		require.Zero(t, up.Snapshot().Peers[i].Conns)
	}
	_, isPacket := any(mustDial(t, up, "tcp4")).(net.PacketConn)
	require.False(t, isPacket, "clients of DNS tell TCP from UDP by it")
}

func mustDial(t *testing.T, up *balancer.Upstream, network string) net.Conn {
	addr := echo(t, "tcp", "127.0.0.1:0", "")
	require.NoError(t, up.Update(context.Background(), servers(addr)))
	c, err := up.DialContext(context.Background(), network, "")
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// least_time takes the time to the connect, and to the first byte, however it is read.
func TestLeastTimeOfConnections(t *testing.T) {
	for _, inflight := range []bool{false, true} {
		for _, mode := range []leasttime.Mode{leasttime.Connect, leasttime.FirstByte, leasttime.LastByte} {
			for _, how := range []string{"read", "writeto"} {
				ck := newClock()
				up := newUpstream(t, balancer.Config{Servers: servers("a b"), Clock: ck.read, Method: leasttime.Method{Mode: mode, Inflight: inflight},
					Dial: func(context.Context, string, string) (net.Conn, error) {
						ck.advance(100 * time.Millisecond)
						c, s := net.Pipe()
						go func() { io.WriteString(s, "first"); io.WriteString(s, "second"); s.Close() }()
						return &late{Conn: c, clock: ck}, nil
					}})
				c, err := up.DialContext(context.Background(), "tcp", "")
				require.NoError(t, err)
				var got bytes.Buffer
				if how == "read" {
					_, err = io.Copy(&got, struct{ io.Reader }{c})
				} else {
					_, err = io.Copy(&got, c)
				}
				require.NoError(t, err)
				require.Equal(t, "firstsecond", got.String())
				ck.advance(time.Second)
				require.NoError(t, c.Close())
				times := up.Snapshot().Peers[0].Times
				require.EqualValues(t, 100, times.Connect)
				require.EqualValues(t, 150, times.Header, "the first byte")
				require.Greater(t, times.Response, int64(1100))
				require.Zero(t, times.InflightReqs)
			}
		}
	}
}

// late takes 50 ms for each read.
type late struct {
	net.Conn
	clock *clock
}

func (l *late) Read(p []byte) (int, error) {
	l.clock.advance(50 * time.Millisecond)
	return l.Conn.Read(p)
}

// What goes with what: docs/parity.md, section 10.
func TestMethodsThatDoNotFit(t *testing.T) {
	isMethodError := func(err error, use string) {
		t.Helper()
		var e *balancer.MethodError
		require.ErrorAs(t, err, &e)
		require.Equal(t, use, e.Use)
	}
	pair := servers("a b")
	for _, c := range []balancer.Config{
		{Servers: pair, Method: leasttime.New(leasttime.Header)},
		{Servers: pair, Method: iphash.New()},
		{Servers: pair, Sticky: sticky.Cookie{Name: "srv"}},
	} {
		_, err := newUpstream(t, c).DialContext(context.Background(), "tcp", "")
		isMethodError(err, "DialContext")
	}
	for _, mode := range []leasttime.Mode{leasttime.Connect, leasttime.FirstByte} {
		f := newFixture(t, balancer.Config{Method: leasttime.New(mode)}, "a: 200; b: 200")
		r, _ := f.request(context.Background(), "GET", "once")
		_, err := f.rt.RoundTrip(r)
		isMethodError(err, "RoundTripper")
		_, err = balancer.Join(f, f.up)
		isMethodError(err, "RoundTripper")
	}
	_, err := newUpstream(t, balancer.Config{Servers: pair}).DialContext(context.Background(), "ip", "")
	var unknown net.UnknownNetworkError
	require.ErrorAs(t, err, &unknown)
}

// hash has its key from WithInput, and the networks are the peers' own.
func TestDialContextKeyAndNetwork(t *testing.T) {
	var asked []string
	up := newUpstream(t, balancer.Config{Method: hash.NewConsistent("$remote_addr"),
		Servers: servers("10.0.0.1:1 10.0.0.2:1 10.0.0.3:1 unix:/run/s"),
		Dial: func(_ context.Context, network, addr string) (net.Conn, error) {
			asked = append(asked, network+" "+addr)
			c, _ := net.Pipe()
			return c, nil
		}})
	for _, network := range []string{"tcp4", "unix", "udp6", "unixgram"} {
		seen := map[string]bool{}
		for _, key := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
			asked = nil
			for range 2 {
				c, err := up.DialContext(balancer.WithInput(context.Background(), balancer.Input{Key: key}), network, "")
				require.NoError(t, err)
				c.Close()
			}
			require.Equal(t, asked[0], asked[1])
			seen[asked[0]] = true
		}
		ip, socket := network, "unix"
		switch network {
		case "unix":
			ip = "tcp"
		case "udp6":
			socket = "unixgram"
		case "unixgram":
			ip, socket = "udp", "unixgram"
		}
		require.Equal(t, map[string]bool{ip + " 10.0.0.1:1": true, ip + " 10.0.0.2:1": true, ip + " 10.0.0.3:1": true, socket + " /run/s": true}, seen)
	}
}

// Of nginx's variables a dialler knows the client's address, if it is given.
func TestDialContextClientAsKey(t *testing.T) {
	for _, text := range []string{"$remote_addr", "$binary_remote_addr", "x$remote_addr"} {
		seen := map[string]bool{}
		up := newUpstream(t, balancer.Config{Method: hash.New(text), Servers: servers("10.0.0.1:1 10.0.0.2:1 10.0.0.3:1"),
			Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
				seen[addr] = true
				c, _ := net.Pipe()
				return c, nil
			}})
		dial := func(client string) {
			ctx := balancer.WithInput(context.Background(), balancer.Input{Client: netip.MustParseAddr(client)})
			c, err := up.DialContext(ctx, "tcp", "")
			require.NoError(t, err)
			c.Close()
		}
		for range 5 {
			dial("192.0.2.7")
			dial("::ffff:192.0.2.7")
		}
		require.Len(t, seen, 1, text)
		for i := range 50 {
			dial(fmt.Sprintf("192.0.2.%d", i))
		}
		require.Len(t, seen, 3, text)
	}
}

// Whatever is closed when and by whom, the peer is let go once.
func TestSessionIsShared(t *testing.T) {
	up := newUpstream(t, balancer.Config{Servers: servers(echo(t, "tcp", "127.0.0.1:0", "") + " " + echo(t, "tcp", "127.0.0.1:0", "")), Method: leasttime.New(leasttime.FirstByte)})
	var wg sync.WaitGroup
	for range 20 {
		c, err := up.DialContext(context.Background(), "tcp", "")
		require.NoError(t, err)
		wg.Go(func() { io.WriteString(c, "x") })
		wg.Go(func() { c.Read(make([]byte, 10)) })
		for range 3 {
			wg.Go(func() { c.Close() })
		}
	}
	wg.Wait()
	for _, s := range up.Snapshot().Peers {
		require.Zero(t, s.Conns)
		require.Zero(t, s.Times.InflightReqs)
	}
}

// Removed while a connection is open, a peer is kept until it is closed.
func TestRemovedUnderAConnection(t *testing.T) {
	var removed []bool
	up := newUpstream(t, balancer.Config{Servers: servers(echo(t, "tcp", "127.0.0.1:0", "a") + " " + refusing(t)), OnEvent: func(e balancer.Event) {
		if e.Kind == peer.PeerIdle {
			removed = append(removed, e.Removed)
		}
	}})
	c, err := up.DialContext(context.Background(), "tcp", "")
	require.NoError(t, err)
	require.NoError(t, up.Remove(up.Servers()[0].Addr))
	p := make([]byte, 1)
	_, err = io.ReadFull(c, p)
	require.NoError(t, err)
	require.Empty(t, removed)
	require.NoError(t, c.Close())
	require.Equal(t, []bool{true}, removed)
}

// A dial function that panics has failed: it runs in net/http's goroutine, where that would
// end the program.
func TestDialThatPanics(t *testing.T) {
	s := server(t, "b", nil)
	up := newUpstream(t, balancer.Config{Servers: servers("10.0.0.1:80 " + addr(s))})
	base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "10.0.0.1:80" {
			panic("angry")
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}}
	log := new(balancer.AttemptLog)
	r, err := http.NewRequestWithContext(balancer.WithLog(context.Background(), log), "POST", "http://backend/", strings.NewReader("x"))
	require.NoError(t, err)
	resp, err := up.RoundTripper(base).RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "502, 200", log.Status())
	require.ErrorContains(t, log.Attempts()[0].Err, "angry")
	require.Zero(t, up.Snapshot().Peers[0].Conns)
}

// A dial function that returns neither a connection nor an error has failed.
func TestDialNothing(t *testing.T) {
	nothing := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	up, err := balancer.New(context.Background(), balancer.Config{Name: "x", Dial: nothing,
		Servers: []balancer.Server{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}}})
	require.NoError(t, err)
	defer up.Close()
	_, err = up.DialContext(context.Background(), "tcp", "x:1")
	require.ErrorContains(t, err, "(nil, nil)")
	client := &http.Client{Transport: up.RoundTripper(&http.Transport{DialContext: nothing})}
	_, err = client.Get("http://x/")
	require.Error(t, err)
	for _, p := range up.Snapshot().Peers {
		require.Zero(t, p.Conns)
	}
}

// A panic of the user's clock when the connection stands keeps neither it nor the
// peer.
func TestDialWithAClockThatPanics(t *testing.T) {
	angry := false
	c := &closed{}
	up, err := balancer.New(context.Background(), balancer.Config{Name: "x",
		Clock: func() time.Duration {
			if angry {
				angry = false
				panic("angry")
			}
			return 1700000000 * time.Second
		},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			angry = true
			return c, nil
		},
		Servers: []balancer.Server{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2", Down: true}}})
	require.NoError(t, err)
	defer up.Close()
	require.PanicsWithValue(t, "angry", func() { _, _ = up.DialContext(context.Background(), "tcp", "x:1") })
	require.Zero(t, up.Snapshot().Peers[0].Conns)
	require.True(t, c.is)
}

// closed is a connection that knows whether it is.
type closed struct {
	net.Conn
	is bool
}

func (c *closed) Close() error {
	c.is = true
	return nil
}

// A hook that panics when the connection stands harms neither it nor the peer.
func TestDialWithAHookThatPanics(t *testing.T) {
	now, alive := 1700000000*time.Second, false
	ours, theirs := net.Pipe()
	defer theirs.Close()
	up, err := balancer.New(context.Background(), balancer.Config{Name: "x",
		Clock: func() time.Duration { return now },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			if !alive {
				return nil, errors.New("refused")
			}
			return ours, nil
		},
		OnEvent: func(e balancer.Event) {
			if e.Kind == peer.PeerAlive {
				panic("angry")
			}
		},
		Servers: []balancer.Server{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2", Down: true}}})
	require.NoError(t, err)
	defer up.Close()
	_, err = up.DialContext(context.Background(), "tcp", "x:1")
	require.Error(t, err)
	now, alive = now+11*time.Second, true
	c, err := up.DialContext(context.Background(), "tcp", "x:1")
	require.NoError(t, err)
	s := up.Snapshot()
	require.EqualValues(t, 1, s.Peers[0].Conns)
	require.EqualValues(t, 1, s.HookPanics)
	require.NoError(t, c.Close())
	require.Zero(t, up.Snapshot().Peers[0].Conns)
}

// The hook may be called by a read that brings the first byte, and may close that very
// connection.
func TestHookClosesAtTheFirstByte(t *testing.T) {
	var up *balancer.Upstream
	var c net.Conn
	ours, theirs := net.Pipe()
	go func() { io.WriteString(theirs, "x"); theirs.Close() }()
	flooded, closed := false, false
	up = newUpstream(t, balancer.Config{Servers: servers("a b"), Method: leasttime.New(leasttime.FirstByte),
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return &before{Conn: ours, do: func() {
				try := up.Start(context.Background(), balancer.Input{})
				assert.True(t, try.Next())
				try.Done(errors.New("failed"))
				flooded = true
			}}, nil
		},
		OnEvent: func(e balancer.Event) {
			switch {
			case flooded && !closed:
				closed = true
				assert.NoError(t, c.Close())
			case e.Kind == peer.PeerFailed:
				// More than one caller has to tell: some are left for who comes next, the read.
				for i := range 2000 {
					assert.NoError(t, up.UpdateServer(context.Background(), "b", func(s *balancer.Server) { s.Weight = 2 + i%2 }))
				}
			}
		}})
	var err error
	c, err = up.DialContext(context.Background(), "tcp", "")
	require.NoError(t, err)
	_, _ = c.Read(make([]byte, 1))
	require.True(t, closed)
	for _, s := range up.Snapshot().Peers {
		require.Zero(t, s.Conns)
	}
}

// before does something in a read that has brought something.
type before struct {
	net.Conn
	do func()
}

func (b *before) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	b.do()
	return n, err
}
