package dns

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// server is a DNS server whose records may change.
type server struct {
	mu         sync.Mutex
	records    map[string][]dns.RR // by name and type: "app.test./A"
	silent     bool                // it answers nothing
	broken     bool                // it answers SERVFAIL
	brokenKind uint16              // it answers SERVFAIL to queries of that type; 0: to none
	asked      map[string]int      // by network and type: "tcp A"
	addr       string
}

// start starts a server on one port of UDP and TCP.
func start(t *testing.T) *server {
	s := &server{records: map[string][]dns.RR{}, asked: map[string]int{}}
	pc, l := listen(t)
	s.addr = pc.LocalAddr().String()
	for network, d := range map[string]*dns.Server{"udp": {PacketConn: pc}, "tcp": {Listener: l}} {
		up := make(chan struct{})
		d.NotifyStartedFunc = func() { close(up) }
		d.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) { s.answer(network, w, r) })
		go d.ActivateAndServe()
		<-up
		t.Cleanup(func() { d.Shutdown() })
	}
	return s
}

// listen finds a port that is free for both: one that is free for UDP may be taken for TCP.
func listen(t *testing.T) (net.PacketConn, net.Listener) {
	var err error
	for range 100 {
		pc, udpErr := net.ListenPacket("udp", "127.0.0.1:0")
		require.NoError(t, udpErr)
		var l net.Listener
		if l, err = net.Listen("tcp", pc.LocalAddr().String()); err == nil {
			return pc, l
		}
		pc.Close()
	}
	require.NoError(t, err)
	return nil, nil
}

// resolver is Go's resolver, asking the server.
func (s *server) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, s.addr)
	}}
}

// set replaces the records of a name: "A 10.0.0.1", "SRV 1 5 80 host.test.". None: the
// name does not exist.
func (s *server) set(t *testing.T, name string, records ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range []string{"A", "AAAA", "SRV"} {
		delete(s.records, name+"/"+kind)
	}
	for _, text := range records {
		rr, err := dns.NewRR(name + " 1 IN " + text)
		require.NoError(t, err)
		key := name + "/" + dns.TypeToString[rr.Header().Rrtype]
		s.records[key] = append(s.records[key], rr)
	}
}

// breaks makes the server answer SERVFAIL to queries of one type; 0: to none.
func (s *server) breaks(kind uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brokenKind = kind
}

func (s *server) be(silent, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent, s.broken = silent, broken
}

func (s *server) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

func (s *server) answer(network string, w dns.ResponseWriter, r *dns.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.Question[0]
	s.asked[fmt.Sprint(network, " ", dns.TypeToString[q.Qtype])]++
	m := new(dns.Msg).SetReply(r)
	m.RecursionAvailable = true // else an answer without records is a lame referral
	switch {
	case s.silent:
		return
	case s.broken, s.brokenKind == q.Qtype && q.Qtype != 0:
		m.Rcode = dns.RcodeServerFailure
	case !s.exists(q.Name):
		m.Rcode = dns.RcodeNameError
	}
	m.Answer = append(m.Answer, s.records[q.Name+"/"+dns.TypeToString[q.Qtype]]...)
	if network == "udp" {
		size := 512
		if opt := r.IsEdns0(); opt != nil {
			size = int(opt.UDPSize())
		}
		m.Truncate(size)
	}
	w.WriteMsg(m)
	// The next answer is in another order.
	if key := q.Name + "/" + dns.TypeToString[q.Qtype]; len(s.records[key]) > 1 {
		s.records[key] = append(s.records[key][1:], s.records[key][0])
	}
}

func (s *server) exists(name string) bool {
	for _, kind := range []string{"A", "AAAA", "SRV"} {
		if len(s.records[name+"/"+kind]) > 0 {
			return true
		}
	}
	return false
}
