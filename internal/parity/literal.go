package parity

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/trunklb/trunk/internal/parity/model"
)

// Literal makes the literal model of a scenario. It is a Factory.
func Literal(s *Scenario, random func() uint32) (Subject, error) {
	l := &literal{requests: map[int]*model.Request{}, ops: map[int]*Op{}}
	l.config = model.Config{Stream: s.Proto == "stream", Random: random, Servers: literalServers(s.Servers)}
	for _, line := range s.Directives {
		if err := l.directive(line); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	var err error
	l.balancer, err = model.New(l.config)
	return l, err
}

// LiteralRing is the ring of the literal model. It is a RingFunc.
func LiteralRing(servers []Server) ([]Point, error) {
	ring, err := model.Ring(literalServers(servers))
	points := make([]Point, len(ring))
	for i, p := range ring {
		points[i] = Point{p.Hash, p.Name}
	}
	return points, err
}

func literalServers(servers []Server) []model.Server {
	list := make([]model.Server, len(servers))
	for i, s := range servers {
		list[i] = model.Server{
			Addr: s.Name, Name: s.Server, Weight: s.Weight, MaxConns: s.MaxConns,
			MaxFails: s.MaxFails, FailTimeout: s.FailTimeout,
			Backup: s.Group == 1, Down: s.Down, Drain: s.Drain, Route: s.Route(),
		}
	}
	return list
}

// literal is the model as a Subject.
type literal struct {
	config   model.Config
	balancer *model.Balancer
	requests map[int]*model.Request
	ops      map[int]*Op // that began them

	// The variables that the sticky directive names.
	route, create, lookup []string
}

// literalMethods are the methods' lines. KEY stands for any key: the recordings
// give its value with each request.
var literalMethods = map[string]model.Config{
	"least_conn":                     {Method: model.LeastConn},
	"least_time header":              {Method: model.LeastTime, Time: model.Header},
	"least_time header inflight":     {Method: model.LeastTime, Time: model.Header, Inflight: true},
	"least_time last_byte":           {Method: model.LeastTime, Time: model.LastByte},
	"least_time last_byte inflight":  {Method: model.LeastTime, Time: model.LastByte, Inflight: true},
	"least_time connect":             {Method: model.LeastTime, Time: model.Connect},
	"least_time connect inflight":    {Method: model.LeastTime, Time: model.Connect, Inflight: true},
	"least_time first_byte":          {Method: model.LeastTime, Time: model.FirstByte},
	"least_time first_byte inflight": {Method: model.LeastTime, Time: model.FirstByte, Inflight: true},
	"hash KEY":                       {Method: model.Hash},
	"hash KEY consistent":            {Method: model.HashConsistent},
	"ip_hash":                        {Method: model.IPHash},
	"random":                         {Method: model.Random},
	"random two":                     {Method: model.RandomTwo},
	"random two least_conn":          {Method: model.RandomTwo},
}

// directive reads a line of the upstream block.
func (l *literal) directive(line string) error {
	words := strings.Fields(line)
	if len(words) > 2 && words[0] == "sticky" {
		return l.sticky(words[1], words[2:])
	}
	if len(words) > 1 && words[0] == "hash" {
		words[1] = "KEY"
	}
	method, ok := literalMethods[strings.Join(words, " ")]
	if !ok {
		return errors.New("no such directive")
	}
	l.config.Method, l.config.Time, l.config.Inflight = method.Method, method.Time, method.Inflight
	return nil
}

// sticky reads the sticky directive.
func (l *literal) sticky(kind string, args []string) error {
	c := &l.config.Sticky
	switch kind {
	case "cookie":
		c.Kind, c.CookieName, args = model.StickyCookie, args[0], args[1:]
	case "route":
		c.Kind, l.route = model.StickyRoute, args
		return nil
	case "learn":
		c.Kind, c.Timeout = model.StickyLearn, 10*time.Minute
	default:
		return errors.New("no such kind of sticky")
	}
	for _, arg := range args {
		if err := l.stickyArg(c, arg); err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
	}
	return nil
}

func (l *literal) stickyArg(c *model.Sticky, arg string) (err error) {
	name, value, _ := strings.Cut(arg, "=")
	switch name {
	case "expires":
		c.ExpiresMax = value == "max"
		if !c.ExpiresMax {
			c.Expires, err = time.ParseDuration(value)
		}
	case "domain":
		c.Domain = value
	case "httponly":
		c.HTTPOnly = true
	case "secure":
		c.Secure = true
	case "samesite":
		c.SameSite = value
	case "path":
		c.Path = value
	case "create":
		l.create = append(l.create, value)
	case "lookup":
		l.lookup = append(l.lookup, value)
	case "timeout":
		c.Timeout, err = time.ParseDuration(value)
	case "zone": // larger than what the recordings put into it
	case "header":
		c.AtHeader = true
	default:
		err = errors.New("no such parameter")
	}
	return err
}

func (l *literal) Time(sec, ms int64) { l.balancer.SetTime(ms) }

func (l *literal) Request(id int, op *Op) (int, error) {
	in := model.Input{Key: string(op.Key), Tries: op.TriesCap}
	if addr := cmp.Or(op.IP, "127.0.0.1"); addr != "unix:" {
		var err error
		if in.Client, err = netip.ParseAddr(addr); err != nil {
			return 0, err
		}
	}
	switch l.config.Sticky.Kind {
	case model.StickyCookie:
		in.Hint = op.Variable("$cookie_" + l.config.Sticky.CookieName)
	case model.StickyRoute:
		in.Hint = firstOf(l.route, op.Variable)
	case model.StickyLearn:
		in.Lookup = firstOf(l.lookup, op.Variable)
		in.Created = l.created(op, "")
	}
	l.ops[id] = op
	r := l.balancer.Begin(in)
	l.requests[id] = r
	return r.Tries(), nil
}

// created is the session id that the request, or its answer with that cookie, creates.
func (l *literal) created(op *Op, setCookie string) string {
	return firstOf(l.create, func(name string) string { return op.Answered(name, setCookie) })
}

// firstOf is the first of the variables' values that is not empty.
func firstOf(names []string, value func(name string) string) string {
	for _, name := range names {
		if v := value(name); v != "" {
			return v
		}
	}
	return ""
}

// request finds a request that was begun and has not ended.
func (l *literal) request(id int) (*model.Request, error) {
	if r := l.requests[id]; r != nil {
		return r, nil
	}
	return nil, errors.New("no such request")
}

// attempt finds a request that holds a peer.
func (l *literal) attempt(id int) (*model.Request, error) {
	r, err := l.request(id)
	if err != nil {
		return nil, err
	}
	if _, ok := r.Held(); !ok {
		return nil, errors.New("the request holds no peer")
	}
	return r, nil
}

func (l *literal) Get(id int) (Got, error) {
	r, err := l.request(id)
	if err != nil {
		return Got{}, err
	}
	var got Got
	if p, ok := l.balancer.Get(r); ok {
		got.Peer = &Peer{p.Group, p.Index}
	}
	got.Tries = r.Tries()
	if text := r.SetCookie(); text != "" {
		got.SetCookie = []string{text}
	}
	return got, nil
}

func (l *literal) Header(id int, ms int64, setCookie string, notified bool) error {
	r, err := l.attempt(id)
	if err != nil || !notified {
		return err
	}
	l.balancer.Header(r, ms, l.created(l.ops[id], setCookie))
	return nil
}

func (l *literal) Notify(id int, what string, ms int64) error {
	r, err := l.attempt(id)
	if err != nil {
		return err
	}
	switch what {
	case "connect":
		l.balancer.Connected(r, ms)
	case "first_byte":
		l.balancer.FirstByte(r, ms)
	default:
		return fmt.Errorf("no such event: %s", what)
	}
	return nil
}

func (l *literal) Next(id int, state string) (freed bool, tries int, err error) {
	return l.free(id, state, -1)
}

func (l *literal) Fin(id int, state string, ms int64) (freed bool, tries int, err error) {
	freed, tries, err = l.free(id, state, ms)
	delete(l.requests, id)
	delete(l.ops, id)
	return freed, tries, err
}

func (l *literal) free(id int, state string, ms int64) (freed bool, tries int, err error) {
	r, err := l.request(id)
	if err != nil {
		return false, 0, err
	}
	outcome, ok := map[string]model.Outcome{"OK": model.OK, "FAILED": model.Failed, "NEXT": model.Next}[state]
	if !ok {
		return false, 0, fmt.Errorf("no such state: %s", state)
	}
	freed = l.balancer.Free(r, outcome, ms)
	return freed, r.Tries(), nil
}

func (l *literal) Sessions() ([]Session, error) {
	var list []Session
	for _, s := range l.balancer.Sessions() {
		list = append(list, Session(s))
	}
	return list, nil
}

func (l *literal) State(p Peer) PeerState {
	s := l.balancer.State(model.Peer(p))
	return PeerState{
		CurrentWeight:   s.CurrentWeight,
		EffectiveWeight: s.EffectiveWeight,
		Conns:           s.Conns,
		Fails:           s.Fails,
		Accessed:        s.Accessed,
		Checked:         s.Checked,
		HeaderTime:      s.HeaderTime,
		ResponseTime:    s.ResponseTime,
		ConnectTime:     s.ConnectTime,
		InflightTime:    s.InflightTime,
		InflightLast:    int64(s.InflightLast),
		InflightChanged: s.InflightChanged,
		InflightReqs:    s.InflightReqs,
	}
}
