package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Server is one peer: one address, after name resolution. Its numbers are
// nginx's own, so a zero is a zero and not a default.
type Server struct {
	Addr        string // printable address, "127.0.0.1:9001"
	Name        string // text of the server directive; empty: Addr
	Weight      int    // > 0
	MaxConns    int    // 0: no limit
	MaxFails    int    // 0: never taken out and never weakened
	FailTimeout int64  // seconds
	Backup      bool
	Down        bool
	Drain       bool
	Route       string // sticky: the sid; empty: MD5 of Addr
}

// Method is the balancing method of an upstream.
type Method int

// The methods (§7).
const (
	RoundRobin Method = iota
	LeastConn
	LeastTime
	Hash
	HashConsistent
	IPHash
	Random
	RandomTwo
)

// Time is the time that least_time compares.
type Time int

// The modes of least_time: header and last byte in http (§7); connect, first
// byte and last byte in stream (§10).
const (
	Header Time = iota
	LastByte
	Connect
	FirstByte
)

// StickyKind is the way a request is tied to a peer.
type StickyKind int

// The kinds of sticky (§9).
const (
	NoSticky StickyKind = iota
	StickyCookie
	StickyRoute
	StickyLearn
)

// Sticky configures session affinity (§9). Only the fields of its kind matter.
type Sticky struct {
	Kind StickyKind

	// Cookie.
	CookieName string
	Expires    time.Duration // 0: a session cookie
	ExpiresMax bool          // expires=max, instead of Expires
	Domain     string
	HTTPOnly   bool
	Secure     bool
	SameSite   string
	Path       string

	// Learn.
	Timeout     time.Duration // a session unused for this long is dead
	AtHeader    bool          // learn at the header, not at the end
	MaxSessions int           // what the zone holds; 0: no limit
}

// Config is one upstream block.
type Config struct {
	Stream   bool // the stream module's copy (§10)
	Servers  []Server
	Method   Method
	Time     Time // LeastTime only
	Inflight bool // LeastTime only
	Sticky   Sticky

	// Random is the source of Random and RandomTwo: 31-bit numbers.
	Random func() uint32
}

// Peer names a peer by its group (0 primary, 1 backup) and its index in it.
type Peer struct{ Group, Index int }

// State is everything that nginx remembers of one peer (§1, §7).
type State struct {
	CurrentWeight   int64
	EffectiveWeight int64
	Conns           int64
	Fails           int64
	Accessed        int64 // seconds
	Checked         int64 // seconds

	// Of least_time, in milliseconds. In stream the header time is the first
	// byte time.
	HeaderTime      int64
	ResponseTime    int64
	ConnectTime     int64
	InflightTime    int64
	InflightLast    uint64 // wraps
	InflightChanged int64
	InflightReqs    int64
}

// Outcome is how an attempt ended.
type Outcome int

// The outcomes: nginx's three (§6), and Abandoned, which nginx does not have:
// the caller went away before anything was known about the peer. The peer is
// released and the request leaves flight, and nothing else is concluded.
const (
	OK Outcome = iota
	Failed
	Next
	Abandoned
)

// peer is a configured server with its state.
type peer struct {
	Server
	State
	id  Peer
	sid string
}

// group is the primary or the backup list of peers (§1).
type group struct {
	peers       []*peer
	totalWeight int64 // of all peers, down ones included
}

// Balancer is one upstream.
type Balancer struct {
	config   Config
	groups   []*group   // the primary group and, if there are backups, a second
	ring     []Point    // of the primary group
	ms       int64      // now
	sessions []*session // the least recently used first
}

// New makes the upstream of a configuration, with no history.
func New(c Config) (*Balancer, error) {
	b := &Balancer{config: c, groups: []*group{{}}}
	if slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Backup }) {
		b.groups = append(b.groups, &group{})
	}
	for _, s := range c.Servers {
		if s.Weight <= 0 {
			return nil, fmt.Errorf("model: server %s: weight %d", s.Addr, s.Weight)
		}
		b.addPeer(s)
	}
	if len(b.groups[0].peers) == 0 {
		return nil, errors.New("model: no primary server")
	}
	if c.Method == HashConsistent {
		b.ring = ring(b.groups[0].peers)
	}
	return b, nil
}

func (b *Balancer) addPeer(s Server) {
	s.Name = cmp.Or(s.Name, s.Addr)
	p := &peer{Server: s, sid: sid(s)}
	p.EffectiveWeight = int64(s.Weight)
	if s.Backup {
		p.id.Group = 1
	}
	g := b.groups[p.id.Group]
	p.id.Index = len(g.peers)
	g.peers = append(g.peers, p)
	g.totalWeight += int64(s.Weight)
}

// SetTime sets the clock, in milliseconds since the Unix epoch. Seconds are
// the whole seconds of it.
func (b *Balancer) SetTime(ms int64) { b.ms = ms }

func (b *Balancer) now() int64 { return b.ms / 1000 }

// single reports whether there is exactly one peer, and no backup (§1).
func (b *Balancer) single() bool {
	return len(b.groups) == 1 && len(b.groups[0].peers) == 1
}

// State shows what is remembered of a peer.
func (b *Balancer) State(p Peer) State { return b.groups[p.Group].peers[p.Index].State }

// Input is what the methods read of a request.
type Input struct {
	Key    string     // of Hash and HashConsistent
	Client netip.Addr // of IPHash; the zero Addr is no IP address (a unix socket)
	Hint   string     // sticky cookie and route: the sid that came with the request
	Lookup string     // sticky learn: the session id that came with the request
	// Created is, for sticky learn, the session id that the request creates by itself:
	// create=$arg_x. Header brings what the answer creates.
	Created string
	Tries   int // next_upstream_tries; 0: no limit
}

// Request is one request, with all its attempts.
type Request struct {
	in      Input
	group   int            // it starts in the primary group
	tried   map[*peer]bool // of the present group
	current *peer
	tries   int

	// Of the hash methods and random.
	misses  int
	hashes  int    // hash: how many were made
	hash    uint32 // hash: their sum; ip_hash: the h reached
	ringPos int    // consistent: the present point, before the modulo

	// Of least_time, for the present attempt.
	inFlight      bool
	connectTime   int64 // -1: not known
	firstByteTime int64 // -1: not known; in http the header time

	created   string // sticky learn: the id that the present attempt creates
	setCookie string
}

// Begin starts a request (§1).
func (b *Balancer) Begin(in Input) *Request {
	r := &Request{in: in, tried: map[*peer]bool{}, connectTime: -1, firstByteTime: -1}
	for _, g := range b.groups {
		for _, p := range g.peers {
			if !p.Down && !p.Drain {
				r.tries++
			}
		}
	}
	if in.Tries > 0 && in.Tries < r.tries {
		r.tries = in.Tries
	}
	r.hash = hashStart(b.config.Method)
	r.ringPos = ringStart(b.ring, in.Key)
	return r
}

// Tries is the number of attempts that the request has left.
func (r *Request) Tries() int { return r.tries }

// GiveBackTry adds a try: the attempt failed on a kept-alive connection (§8).
func (r *Request) GiveBackTry() { r.tries++ }

// SetCookie is the text of the sticky cookie to set, or "" (§9). It is that of
// the last peer that was got.
func (r *Request) SetCookie() string { return r.setCookie }

// Held is the peer that the request holds at present, if it holds one.
func (r *Request) Held() (Peer, bool) {
	if r.current == nil {
		return Peer{}, false
	}
	return r.current.id, true
}

// Get asks for a peer and takes it. It reports false when there is none: BUSY.
func (b *Balancer) Get(r *Request) (Peer, bool) {
	r.created, r.connectTime, r.firstByteTime = r.in.Created, -1, -1
	p := b.pick(r)
	if p == nil {
		return Peer{}, false
	}
	if b.config.Sticky.Kind == StickyCookie {
		r.setCookie = b.cookieText(p)
	}
	return p.id, true
}

// pick runs the method in the request's present group.
func (b *Balancer) pick(r *Request) *peer {
	switch b.config.Method {
	case LeastConn:
		return b.leastConn(r)
	case LeastTime:
		return b.leastTime(r)
	case Hash:
		return b.hash(r)
	case HashConsistent:
		return b.consistent(r)
	case IPHash:
		return b.ipHash(r)
	case Random:
		return b.random(r)
	case RandomTwo:
		return b.randomTwo(r)
	default:
		return b.roundRobin(r)
	}
}
