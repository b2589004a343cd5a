package hash

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/peer"
)

// pointsPerWeight is how many points a server gets per unit of weight.
const pointsPerWeight = 160

// point is a place on the ring and the server, by its number, that it belongs to.
type point struct{ hash, server uint32 }

// ring is the ketama circle of servers. It is immutable and the same in every
// process that has the same servers.
type ring struct {
	points []point
	// names are the texts of the servers by number, in the order of the list.
	names []string
}

// A server's text is what its points are made from. Peers of one text are one
// server on the ring.
type text func(peer.Server) string

func name(s peer.Server) string    { return s.Name } // nginx's
func address(s peer.Server) string { return s.Addr } // ByAddress

// Ring returns the points of the ring that a set's primary servers make, in
// ring order, each with the name of its server: what any process with the same
// servers has. A point, and all keys that hash to at most it down to the point before,
// belong to that server. The error is a *peer.ConfigError if the servers ask for more
// than maxPoints, which is as in Method.
func Ring(set *peer.Set, maxPoints int) (iter.Seq2[uint32, string], error) {
	r, err := newRing(set, name, maxPoints)
	if err != nil {
		return nil, err
	}
	return func(yield func(uint32, string) bool) {
		for _, p := range r.points {
			if !yield(p.hash, r.names[p.server]) {
				return
			}
		}
	}, nil
}

// newRing makes the ring of the primary group. nginx adds the points of every
// peer; those of a text that is in the list already are on the ring already, as
// far as its weight went.
func newRing(set *peer.Set, of text, maxPoints int) (*ring, error) {
	if maxPoints <= 0 {
		maxPoints = DefaultMaxPoints
	}
	n := countPoints(set, of)
	if n > int64(maxPoints) {
		return nil, &peer.ConfigError{Server: -1, Field: "hash.Method.MaxPoints", Value: maxPoints,
			Reason: fmt.Sprintf("the weights ask for a ring of %d points, 160 per unit", n)}
	}
	r := &ring{}
	points := make(points, 0, n)
	number := map[string]int{}
	var weights []int // by server: how much of it is on the ring
	for i := range set.Len(peer.Primary) {
		srv := set.Server(peer.Primary, i)
		name := of(srv)
		n, known := number[name]
		if !known {
			n = len(r.names)
			number[name] = n
			r.names, weights = append(r.names, name), append(weights, 0)
		}
		if srv.Weight > weights[n] {
			points.add(uint32(n), name, weights[n]*pointsPerWeight, srv.Weight*pointsPerWeight)
			weights[n] = srv.Weight
		}
	}
	r.points = points.sorted()
	return r, nil
}

// countPoints is how many points a set's ring has before equal hashes are dropped.
func countPoints(set *peer.Set, of text) int64 {
	heaviest := map[string]int64{}
	sum := int64(0)
	for i := range set.Len(peer.Primary) {
		srv := set.Server(peer.Primary, i)
		name := of(srv)
		if more := int64(srv.Weight) - heaviest[name]; more > 0 {
			heaviest[name] += more
			sum += more
		}
	}
	if sum > math.MaxInt64/pointsPerWeight {
		return math.MaxInt64
	}
	return sum * pointsPerWeight
}

// points are those of a ring in the order in which they are added.
type points []point

// sorted returns them in ring order, in the memory that they have and as much again. Of
// equal hashes the one that was added first stays. They are sorted by a digit of the
// hash after the other, from the last one on, which for many takes a tenth of the time that
// comparing does.
func (p points) sorted() []point {
	const bits = 11
	from, to := []point(p), make([]point, len(p))
	for shift := 0; shift < 32; shift += bits {
		digit := func(at point) uint32 { return at.hash >> shift & (1<<bits - 1) }
		var next [1 << bits]int // where the next point with the digit goes
		for _, at := range from {
			next[digit(at)]++
		}
		sum := 0
		for d, n := range next {
			next[d] = sum
			sum += n
		}
		for _, at := range from {
			to[next[digit(at)]] = at
			next[digit(at)]++
		}
		from, to = to, from
	}
	return slices.Clip(slices.CompactFunc(from, func(a, b point) bool { return a.hash == b.hash }))
}

// add appends the points from the first to the last, exclusive, of a server,
// each hashed from the one before.
func (p *points) add(server uint32, name string, first, last int) {
	host, port := split(name)
	base := checksum(update(checksum(0, host), 0), port)
	h := uint32(0)
	for n := range last {
		crc := base
		for shift := 0; shift < 32; shift += 8 {
			crc = update(crc, byte(h>>shift))
		}
		h = crc
		if n >= first {
			*p = append(*p, point{h, server})
		}
	}
}

// split parts a server name at its last colon, if only digits follow. The
// brackets of an IPv6 address stay with the host.
func split(name string) (host, port string) {
	if len(name) >= 5 && strings.EqualFold(name[:5], "unix:") {
		return name[5:], ""
	}
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == ':' {
			return name[:i], name[i+1:]
		}
		if name[i] < '0' || name[i] > '9' {
			break
		}
	}
	return name, ""
}

// find returns the index of the first point at or after hash; past the end it
// is the first of all.
func (r *ring) find(hash uint32) int {
	lo, hi := 0, len(r.points)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if r.points[mid].hash < hash {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(r.points) {
		return 0
	}
	return lo
}

// next returns the index of the point after another.
func (r *ring) next(at int) int {
	if at++; at < len(r.points) {
		return at
	}
	return 0
}

// consistent picks on the ring.
type consistent struct {
	ring *ring
	// peers are the indexes of the peers by group and server number, in list
	// order. The backup group has no ring of its own: it is asked by the
	// texts of the primary's.
	peers [2][][]int32
}

func newConsistent(set *peer.Set, of text, maxPoints int) (*consistent, error) {
	r, err := newRing(set, of, maxPoints)
	if err != nil {
		return nil, err
	}
	s := &consistent{ring: r}
	number := make(map[string]int, len(r.names))
	for n, name := range r.names {
		number[name] = n
	}
	for group := range s.peers {
		s.peers[group] = make([][]int32, len(r.names))
		for i := range set.Len(group) {
			if n, ok := number[of(set.Server(group, i))]; ok {
				s.peers[group][n] = append(s.peers[group][n], int32(i))
			}
		}
	}
	return s, nil
}

// pick goes along the ring from the key's point, or from where the request
// was, to the first server with an available peer; the trunk chooses among
// the peers of that server.
func (s *consistent) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if i, ok := pick.Preset(r, g.Single() || r.Key == ""); ok {
		return i
	}
	if !m.Begun {
		m.Begun, m.Hash = true, checksum(0, r.Key)
	}
	at := s.ring.find(m.Hash)
	for {
		p := s.ring.points[at]
		m.Hash = p.hash
		if i := s.among(g, r, p.server, now); i >= 0 {
			return i
		}
		at = s.ring.next(at)
		if pick.Missed(r) {
			return peer.RoundRobin
		}
	}
}

// among lets the trunk choose among the peers of a server.
func (s *consistent) among(g *peer.Group, r *peer.Request, server uint32, now peer.Now) int {
	t := g.Trunk()
	for _, i := range s.peers[g.Index()][server] {
		if g.Eligible(int(i), r, now) {
			t.Add(int(i))
		}
	}
	r.Rule = peer.RingPoint
	return t.Settle()
}

// explain shows the point whose server got the
// request.
func (s *consistent) explain(g *peer.Group, r *peer.Request, i int, now peer.Now) string {
	if r.Rule != peer.RingPoint {
		return ""
	}
	p := s.ring.points[s.ring.find(r.Scratch.Hash)]
	if !slices.Contains(s.peers[g.Index()][p.server], int32(i)) {
		return ""
	}
	return fmt.Sprintf("ring point %d", p.hash)
}
