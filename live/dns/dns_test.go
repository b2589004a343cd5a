package dns

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/port"
	"github.com/trunklb/trunk/peer"
)

// patience is how long a look-up may take where none is to fail for want of time,
// however busy the machine is.
const patience = 30 * time.Second

// watched is an upstream that looks names up often.
type watched struct {
	*balancer.Upstream
	mu     sync.Mutex
	failed int
	last   error
}

func watch(t *testing.T, s *server, timeout time.Duration, servers ...balancer.Server) *watched {
	w := &watched{}
	up, err := balancer.New(context.Background(), balancer.Config{Name: "backend", Servers: servers, Resolver: s.resolver(),
		ResolveInterval: 20 * time.Millisecond, ResolveTimeout: timeout, OnEvent: func(e balancer.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if e.Kind == peer.LookupFailed {
				w.failed++
				w.last = e.Lookup.Err
			}
		}})
	require.NoError(t, err)
	t.Cleanup(func() { up.Close() })
	w.Upstream = up
	return w
}

func (w *watched) failures() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// peers returns the peers with their weight, backups with "b".
func (w *watched) peers() string {
	var list []string
	for _, s := range w.Snapshot().Peers {
		text := fmt.Sprint(s.Server.Addr, "*", s.Server.Weight)
		if s.Server.Backup {
			text += "b"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func (w *watched) want(t *testing.T, peers string) {
	t.Helper()
	eventually(t, func() bool { return w.peers() == peers })
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for range 2000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it never came")
}

func TestAddresses(t *testing.T) {
	s := start(t)
	s.set(t, "app.test.", "A 10.0.0.2", "AAAA 2001:db8::1", "A 10.0.0.1")
	up := watch(t, s, patience, balancer.Server{Addr: "app.test.:81", Resolve: true})
	const first = "10.0.0.1:81*1 10.0.0.2:81*1 [2001:db8::1]:81*1"
	require.Equal(t, first, up.peers())
	// Answers come in turns of another order.
	asked := s.count("udp A")
	eventually(t, func() bool { return s.count("udp A") > asked+5 })
	require.Equal(t, first, up.peers())
	s.set(t, "app.test.", "A 10.0.0.2", "A 10.0.0.9")
	up.want(t, "10.0.0.2:81*1 10.0.0.9:81*1")
	require.Zero(t, up.failures())
}

func TestService(t *testing.T) {
	s := start(t)
	s.set(t, "_http._tcp.app.test.", "SRV 1 5 8001 n1.test.", "SRV 1 0 8002 n2.test.", "SRV 9 3 8003 n1.test.")
	s.set(t, "n1.test.", "A 10.0.0.1")
	s.set(t, "n2.test.", "AAAA 2001:db8::2")
	up := watch(t, s, patience, balancer.Server{Addr: "app.test.", Resolve: true, Service: "http"})
	require.Equal(t, "10.0.0.1:8001*5 [2001:db8::2]:8002*1 10.0.0.1:8003*3b", up.peers())
	s.set(t, "_http._tcp.app.test.", "SRV 1 6 8001 n1.test.", "SRV 1 1 8002 gone.test.")
	up.want(t, "10.0.0.1:8001*6")
	s.set(t, "_http._tcp.app.test.", "SRV 0 0 0 .")
	before := up.failures()
	eventually(t, func() bool { return up.failures() > before+2 })
	require.Equal(t, "10.0.0.1:8001*6", up.peers())
}

// What fails keeps the last good set, and what comes back is taken.
func TestFailures(t *testing.T) {
	s := start(t)
	s.set(t, "app.test.", "A 10.0.0.1")
	// One that gets no answer fails after a second.
	up := watch(t, s, time.Second, balancer.Server{Addr: "app.test.", Resolve: true})
	for name, fail := range map[string]func(){
		"NXDOMAIN": func() { s.set(t, "app.test.") },
		"SERVFAIL": func() { s.be(false, true) },
		"silence":  func() { s.be(true, false) },
	} {
		t.Run(name, func(t *testing.T) {
			fail()
			before := up.failures()
			eventually(t, func() bool { return up.failures() > before+1 })
			require.Equal(t, 1, len(up.Snapshot().Peers))
			s.be(false, false)
			s.set(t, "app.test.", "A 10.0.1.1")
			up.want(t, "10.0.1.1:80*1")
			s.set(t, "app.test.", "A 10.0.0.1")
			up.want(t, "10.0.0.1:80*1")
		})
	}
}

// SERVFAIL for one family of addresses is no answer for it, however good the other's is.
func TestOneFamilyFails(t *testing.T) {
	s := start(t)
	s.set(t, "app.test.", "A 10.0.0.1", "A 10.0.0.2", "AAAA 2001:db8::1")
	up := watch(t, s, patience, balancer.Server{Addr: "app.test.", Resolve: true})
	for kind, want := range map[uint16]string{
		dns.TypeA:    "10.0.0.1:80*1 10.0.0.2:80*1 [2001:db8::9]:80*1",
		dns.TypeAAAA: "10.0.0.9:80*1 [2001:db8::1]:80*1",
	} {
		s.breaks(kind)
		s.set(t, "app.test.", "A 10.0.0.9", "AAAA 2001:db8::9")
		up.want(t, want)
		s.breaks(0)
		s.set(t, "app.test.", "A 10.0.0.1", "A 10.0.0.2", "AAAA 2001:db8::1")
		up.want(t, "10.0.0.1:80*1 10.0.0.2:80*1 [2001:db8::1]:80*1")
	}
}

func TestUnknownName(t *testing.T) {
	s := start(t)
	for _, server := range []balancer.Server{{Addr: "no.test."}, {Addr: "no.test.", Resolve: true}, {Addr: "no.test.", Resolve: true, Service: "http"}} {
		_, err := balancer.New(context.Background(), balancer.Config{Servers: []balancer.Server{server}, Resolver: s.resolver()})
		var unknown *balancer.ResolveError
		require.ErrorAs(t, err, &unknown)
		var e *net.DNSError
		require.ErrorAs(t, err, &e)
		require.True(t, e.IsNotFound)
	}
	s.be(true, false)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := balancer.New(ctx, balancer.Config{Servers: []balancer.Server{{Addr: "app.test."}}, Resolver: s.resolver()})
	require.Error(t, err)
}

// A thousand addresses do not fit into a datagram.
func TestThousandAddresses(t *testing.T) {
	s := start(t)
	var records, want []string
	for i := range 1000 {
		ip := fmt.Sprintf("10.1.%d.%d", i/250, i%250)
		records = append(records, "A "+ip)
		want = append(want, ip+":80")
	}
	s.set(t, "app.test.", records...)
	up := watch(t, s, patience, balancer.Server{Addr: "app.test.", Resolve: true})
	var got []string
	for _, p := range up.Snapshot().Peers {
		got = append(got, p.Server.Addr)
	}
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(t, want, got)
	require.NotZero(t, s.count("tcp A"))
	s.set(t, "app.test.", records[500:]...)
	eventually(t, func() bool { return len(up.Snapshot().Peers) == 500 })
}

// A name whose addresses come and go under requests loses none of them.
func TestFlapping(t *testing.T) {
	at, err := port.New()
	require.NoError(t, err)
	defer at.Close()
	backend := func(ip string) {
		l, err := at.ListenAt(ip)
		require.NoError(t, err)
		b := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
		b.Listener.Close()
		b.Listener = l
		b.Start()
		t.Cleanup(b.Close)
	}
	backend("127.0.0.1")
	backend("127.0.0.2")
	s := start(t)
	s.set(t, "app.test.", "A 127.0.0.1")
	up := watch(t, s, patience, balancer.Server{Addr: fmt.Sprintf("app.test.:%d", at.Number()), Resolve: true})
	client := &http.Client{Transport: up.RoundTripper(nil)}
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := client.Get("http://backend/")
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	first, second := fmt.Sprintf("127.0.0.1:%d*1", at.Number()), fmt.Sprintf("127.0.0.2:%d*1", at.Number())
	for i := range 12 {
		switch i % 4 {
		case 0:
			s.set(t, "app.test.", "A 127.0.0.1", "A 127.0.0.2")
			up.want(t, first+" "+second)
		case 1:
			s.set(t, "app.test.", "A 127.0.0.2")
			up.want(t, second)
		case 2:
			s.set(t, "app.test.") // and nothing changes
		case 3:
			s.set(t, "app.test.", "A 127.0.0.1")
			up.want(t, first)
		}
	}
	close(stop)
	load.Wait()
}
