package model

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
)

const (
	maxMisses     = 20   // of one request; then it goes to round robin
	pointsPerUnit = 160  // of weight, on the ring
	ipHashStart   = 89   // h of ip_hash before the first byte
	ipHashModulo  = 6271 // and what h stays below
)

// byRange walks x over the ranges of the weights. Down peers keep theirs.
func (g *group) byRange(x int64) *peer {
	for _, p := range g.peers {
		if x < int64(p.Weight) {
			return p
		}
		x -= int64(p.Weight)
	}
	panic("model: x is not below the total weight")
}

// hashStart is what the hash of a request begins with.
func hashStart(m Method) uint32 {
	if m == IPHash {
		return ipHashStart
	}
	return 0
}

// hash is hash without consistent (§7).
func (b *Balancer) hash(r *Request) *peer {
	g := b.groups[r.group]
	if r.in.Key == "" || len(g.peers) < 2 || r.misses > maxMisses {
		return b.roundRobin(r)
	}
	if p := b.hinted(r); p != nil {
		return b.take(r, p)
	}
	for r.misses <= maxMisses {
		prefix := ""
		if r.hashes > 0 {
			prefix = strconv.Itoa(r.hashes)
		}
		r.hash += crc32.ChecksumIEEE([]byte(prefix+r.in.Key)) >> 16 & 0x7fff
		r.hashes++
		if p := g.byRange(int64(r.hash) % g.totalWeight); b.eligible(r, p) {
			return b.take(r, p)
		}
		r.misses++
	}
	return b.roundRobin(r)
}

// ipHash is ip_hash (§7).
func (b *Balancer) ipHash(r *Request) *peer {
	g := b.groups[r.group]
	if len(g.peers) < 2 || r.misses > maxMisses {
		return b.roundRobin(r)
	}
	if p := b.hinted(r); p != nil {
		return b.take(r, p)
	}
	for r.misses <= maxMisses {
		for _, octet := range ipHashBytes(r.in) {
			r.hash = (r.hash*113 + uint32(octet)) % ipHashModulo
		}
		if p := g.byRange(int64(r.hash) % g.totalWeight); b.eligible(r, p) {
			return b.take(r, p)
		}
		r.misses++
	}
	return b.roundRobin(r)
}

// ipHashBytes is the part of the client's address that ip_hash reads.
func ipHashBytes(in Input) []byte {
	switch {
	case in.Client.Is4():
		return in.Client.AsSlice()[:3]
	case in.Client.Is6():
		return in.Client.AsSlice()
	default:
		return []byte{0, 0, 0}
	}
}

// Point is one point of the ring. It belongs to a server name, not to an
// address.
type Point struct {
	Hash uint32
	Name string
}

// Ring is the ring of hash consistent over the primary servers (§7).
func Ring(servers []Server) ([]Point, error) {
	b, err := New(Config{Servers: servers, Method: HashConsistent})
	if err != nil {
		return nil, err
	}
	return b.ring, nil
}

// ring makes the points of the peers. Of points with the same hash the one that
// was made first stays.
func ring(peers []*peer) []Point {
	var points []Point
	for _, p := range peers {
		host, port := splitName(p.Name)
		var hash uint32
		for range pointsPerUnit * p.Weight {
			previous := binary.LittleEndian.AppendUint32(nil, hash)
			hash = crc32.ChecksumIEEE([]byte(host + "\x00" + port + string(previous)))
			points = append(points, Point{hash, p.Name})
		}
	}
	slices.SortStableFunc(points, func(x, y Point) int { return cmp.Compare(x.Hash, y.Hash) })
	return slices.CompactFunc(points, func(x, y Point) bool { return x.Hash == y.Hash })
}

// splitName splits a server name into the host and the port of the ring.
func splitName(name string) (host, port string) {
	if len(name) >= 5 && strings.EqualFold(name[:5], "unix:") {
		return name[5:], ""
	}
	i := strings.LastIndexByte(name, ':')
	if i < 0 || strings.Trim(name[i+1:], "0123456789") != "" {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// ringStart is the first point at or after the key's hash. It may be one past
// the last point; positions are used modulo their number.
func ringStart(points []Point, key string) int {
	hash := crc32.ChecksumIEEE([]byte(key))
	for i, p := range points {
		if p.Hash >= hash {
			return i
		}
	}
	return len(points)
}

// consistent is hash consistent (§7).
func (b *Balancer) consistent(r *Request) *peer {
	if b.single() || r.in.Key == "" || r.misses > maxMisses {
		return b.roundRobin(r)
	}
	if p := b.hinted(r); p != nil {
		return b.take(r, p)
	}
	for r.misses <= maxMisses {
		name := b.ring[r.ringPos%len(b.ring)].Name
		var candidates []*peer
		for _, p := range b.allEligible(r) {
			if p.Name == name {
				candidates = append(candidates, p)
			}
		}
		if p := trunk(candidates); p != nil {
			return b.take(r, p)
		}
		r.ringPos++
		r.misses++
	}
	return b.roundRobin(r)
}
