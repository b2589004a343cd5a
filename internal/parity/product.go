package parity

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/directive"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// Product makes trunk's own peers of a scenario. It is a Factory.
func Product(s *Scenario, draw func() uint32) (Subject, error) {
	p := &trunkSubject{scenario: s, requests: map[int]*trunkRequest{}}
	clock := func() time.Duration { return p.now }
	var err error
	if p.sessions, err = sticky.NewMemoryTable(0, &sticky.Options{Clock: clock}); err != nil {
		return nil, err
	}
	method, binds, err := productMethod(s.Directives, p.sessions)
	if err != nil {
		return nil, err
	}
	if binds != nil {
		method = sticky.Over(method)
	}
	if p.binding, err = sticky.New(binds, &sticky.Options{Clock: clock}); err != nil {
		return nil, err
	}
	p.upstream, err = peer.New(productServers(s.Servers), method, &peer.Options{Clock: clock, Source: source(draw)})
	return p, err
}

// source turns the recorded draws into a rand.Source of which the product's
// draws are the top 31 bits.
type source func() uint32

func (s source) Uint64() uint64 { return uint64(s()) << 33 }

var _ rand.Source = source(nil)

// productServers takes the recording's zeros for nginx's.
func productServers(servers []Server) []peer.Server {
	list := make([]peer.Server, len(servers))
	for i, s := range servers {
		list[i] = peer.Server{
			Addr: s.Name, Name: s.Server, Weight: s.Weight, MaxConns: s.MaxConns,
			MaxFails:    cmp.Or(s.MaxFails, peer.NoMaxFails),
			FailTimeout: cmp.Or(time.Duration(s.FailTimeout)*time.Second, peer.NoFailTimeout),
			Backup:      s.Group == peer.Backup, Down: s.Down, Drain: s.Drain, Route: s.Route(),
		}
	}
	return list
}

// productMethod reads the method's line and the sticky line, where there are such.
func productMethod(directives []string, sessions sticky.Table) (method peer.Method, binds sticky.Sticky, err error) {
	for _, line := range directives {
		words := strings.Fields(line)
		if words[0] == "sticky" {
			binds, err = productSticky(words[1], words[2:], sessions)
		} else {
			method, err = directive.Method(words, nil)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	return method, binds, nil
}

// productSticky reads the arguments of a sticky line.
func productSticky(kind string, args []string, sessions sticky.Table) (sticky.Sticky, error) {
	cookie, learn := sticky.Cookie{}, sticky.Learn{Table: sessions}
	switch kind {
	case "route":
		return sticky.Route{Variables: args}, nil
	case "cookie":
		cookie.Name, args = args[0], args[1:]
	}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		err := error(nil)
		switch name {
		case "expires":
			cookie.Expires = sticky.MaxExpires
			if value != "max" {
				cookie.Expires, err = time.ParseDuration(value)
			}
		case "domain":
			cookie.Domain = value
		case "path":
			cookie.Path = value
		case "samesite":
			cookie.SameSite = value
		case "httponly":
			cookie.HTTPOnly = true
		case "secure":
			cookie.Secure = true
		case "create":
			learn.Create = append(learn.Create, value)
		case "lookup":
			learn.Lookup = append(learn.Lookup, value)
		case "timeout":
			learn.Timeout, err = time.ParseDuration(value)
		case "header":
			learn.Header = true
		case "zone": // larger than what the recordings put into it
		default:
			err = errors.New("no such parameter")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
	}
	if kind == "cookie" {
		return cookie, nil
	}
	return learn, nil
}

// trunkSubject is an upstream of package peer, with the binding of package
// sticky, as a Subject.
type trunkSubject struct {
	scenario *Scenario
	upstream *peer.Upstream
	binding  *sticky.Binding
	sessions *sticky.MemoryTable
	now      time.Duration
	requests map[int]*trunkRequest
}

// trunkRequest is a request with what the binding reads of it.
type trunkRequest struct {
	peer.Request
	op        *Op
	answered  string // the cookie in the present attempt's answer
	setCookie []string
}

// value looks up the variables of the request and the answer. It is a sticky.Values.
func (r *trunkRequest) value(text string) string {
	return r.op.Answered(text, r.answered)
}

func (p *trunkSubject) Time(sec, ms int64) { p.now = time.Duration(ms) * time.Millisecond }

func (p *trunkSubject) Request(id int, op *Op) (int, error) {
	r := &trunkRequest{op: op}
	r.Key, r.MaxTries, r.Stream = string(op.Key), op.TriesCap, p.scenario.Proto == "stream"
	if addr := cmp.Or(op.IP, "127.0.0.1"); addr != "unix:" {
		var err error
		if r.Client, err = netip.ParseAddr(addr); err != nil {
			return 0, err
		}
	}
	p.requests[id] = r
	err := p.upstream.Begin(&r.Request)
	return r.Tries(), err
}

func (p *trunkSubject) Get(id int) (Got, error) {
	r := p.requests[id]
	r.answered = ""
	var err error
	if r.Hint, err = p.binding.Hint(context.Background(), r.value); err != nil {
		return Got{}, err
	}
	err = p.upstream.Get(&r.Request)
	got := Got{Tries: r.Tries()}
	if at, ok := p.upstream.Peer(&r.Request); ok {
		got.Peer = &Peer{at.Group, at.Index}
		if text := p.binding.SetCookie(at.SID, r.value); text != "" {
			r.setCookie = []string{text}
		}
	}
	got.SetCookie = r.setCookie
	if errors.Is(err, peer.ErrNoLivePeers) {
		err = nil
	}
	return got, err
}

// since makes it ms since the request's get. The product times events by its own clock,
// which nearly all recordings do too; in some an event has a time of its own.
func (p *trunkSubject) since(id int, ms int64) *trunkRequest {
	r := p.requests[id]
	r.Scratch.Start = p.now.Milliseconds() - ms
	return r
}

func (p *trunkSubject) Header(id int, ms int64, setCookie string, notified bool) error {
	if !notified {
		return nil
	}
	r := p.since(id, ms)
	r.answered = setCookie
	at, _ := p.upstream.Peer(&r.Request)
	return errors.Join(p.upstream.Header(&r.Request), p.binding.Header(context.Background(), at.SID, r.value))
}

func (p *trunkSubject) Notify(id int, what string, ms int64) error {
	r := p.since(id, ms)
	if what == "connect" {
		return p.upstream.Connected(&r.Request)
	}
	return p.upstream.FirstByte(&r.Request)
}

var productOutcomes = map[string]peer.Outcome{"OK": peer.OK, "FAILED": peer.Failed, "NEXT": peer.Next}

func (p *trunkSubject) Next(id int, state string) (bool, int, error) {
	o, ok := productOutcomes[state]
	if !ok {
		return false, 0, fmt.Errorf("no such state: %q", state)
	}
	r := p.requests[id]
	at, _ := p.upstream.Peer(&r.Request)
	err := p.upstream.Free(&r.Request, o)
	if errors.Is(err, peer.ErrNotHeld) {
		return false, r.Tries(), nil
	}
	if err == nil && o == peer.OK {
		err = p.binding.OK(context.Background(), at.SID, r.value)
	}
	return true, r.Tries(), err
}

func (p *trunkSubject) Fin(id int, state string, ms int64) (bool, int, error) {
	p.since(id, ms)
	return p.Next(id, state)
}

func (p *trunkSubject) Sessions() ([]Session, error) {
	var list []Session
	for id, sid := range p.sessions.All() {
		list = append(list, Session{hex.EncodeToString(id[:]), sid})
	}
	slices.SortFunc(list, func(a, b Session) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

func (p *trunkSubject) State(at Peer) PeerState {
	s := p.upstream.State(at.Group, at.Index)
	return PeerState{
		CurrentWeight: s.CurrentWeight, EffectiveWeight: s.EffectiveWeight,
		Conns: s.Conns, Fails: s.Fails, Accessed: s.Accessed, Checked: s.Checked,
		HeaderTime: s.Times.Header, ResponseTime: s.Times.Response, ConnectTime: s.Times.Connect,
		InflightTime: s.Times.Inflight, InflightLast: int64(s.Times.InflightLast),
		InflightChanged: s.Times.InflightChanged, InflightReqs: s.Times.InflightReqs,
	}
}

// ProductRing is the ring of package hash. It is a RingFunc.
func ProductRing(servers []Server) ([]Point, error) {
	set, err := peer.NewSet(productServers(servers), 0)
	if err != nil {
		return nil, err
	}
	ring, err := hash.Ring(set, 0)
	if err != nil {
		return nil, err
	}
	var points []Point
	for h, server := range ring {
		points = append(points, Point{h, server})
	}
	return points, nil
}
