// Package iphash is nginx's ip_hash: a client address keeps its peer.
package iphash

import (
	"net/netip"

	"github.com/trunklb/trunk/internal/fields"
	"github.com/trunklb/trunk/internal/lint"
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/peer"
)

// Method is ip_hash (docs/parity.md, section 7). It hashes Request.Client.
type Method struct {
	// WholeRange honours weights of any size. nginx's hash stays below 6271 and is
	// taken modulo the total weight (quirk Q6): of ten peers of weight 1000 the
	// last three get nothing, and the seventh a quarter of its share. With
	// WholeRange a hash of 64 bits is spread over the whole total, up to 2^63:
	// that of the same bytes of the address (FNV-1a), from which the choices
	// after a miss follow (SplitMix64). Shares are by weight, but every client
	// has another peer than nginx would give it, so that a fleet must change
	// over together. It costs nothing.
	WholeRange bool
}

// New returns ip_hash.
func New() Method { return Method{} }

// Build implements peer.Method. It never fails.
func (m Method) Build(set *peer.Set) (peer.Selector, error) {
	ranges := [2]pick.Ranges{pick.NewRanges(set, peer.Primary), pick.NewRanges(set, peer.Backup)}
	if m.WholeRange {
		return peer.Selector{Pick: (&whole{ranges}).pick}, nil
	}
	return peer.Selector{Pick: (&selector{ranges}).pick}, nil
}

// Describe implements peer.Method.
func (m Method) Describe() peer.Description {
	d := peer.Description{Directive: []string{"ip_hash"}, Remedies: fields.Set(m, ""), BackupsFirst: true,
		Client: true, NotStream: "use hash, with the client's address as Input.Key", ByWeight: true}
	if !m.WholeRange {
		d.Lint = func(servers []peer.Server, warn lint.Warn) { lint.LargeWeights(servers, "ip_hash", modulus, warn) }
	}
	return d
}

// String returns the method's line in an upstream block.
func (m Method) String() string { return peer.Describe(m).Name }

// nginx's constants: the hash starts at 89 and stays below 6271.
const (
	start   = 89
	factor  = 113
	modulus = 6271
)

type selector struct{ ranges [2]pick.Ranges }

// pick hashes the address, and goes on from the hash that it reached, also in
// the next retry, while the peer there is not available.
func (s *selector) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if i, ok := pick.Preset(r, g.Len() < 2); ok {
		return i
	}
	if !m.Begun {
		m.Begun, m.Hash = true, start
	}
	for {
		m.Hash = round(m.Hash, r.Client)
		i := s.ranges[g.Index()].At(int64(m.Hash) % g.TotalWeight())
		if g.Eligible(i, r, now) {
			r.Rule = peer.AddressHash
			return i
		}
		if pick.Missed(r) {
			return peer.RoundRobin
		}
	}
}

// round takes the address into the hash.
func round(h uint32, client netip.Addr) uint32 {
	b, n := octets(client)
	for _, octet := range b[:n] {
		h = (h*factor + uint32(octet)) % modulus
	}
	return h
}

// octets are the n bytes that count of an address: three of IPv4, all of IPv6,
// and three zeros for a client that has none.
func octets(client netip.Addr) (b [16]byte, n int) {
	b = client.As16()
	switch {
	case client.Is4():
		return [16]byte{b[12], b[13], b[14]}, 3
	case !client.IsValid():
		return b, 3
	}
	return b, 16
}
