// Package hash is nginx's hash, plain and consistent: a key keeps its peer.
//
// Its name shadows the standard library's; where both are needed import it as
//
//	import trunkhash "github.com/trunklb/trunk/hash"
package hash

import (
	"errors"
	"fmt"
	"strings"

	"github.com/trunklb/trunk/internal/fields"
	"github.com/trunklb/trunk/internal/lint"
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/peer"
)

// Method is hash KEY [consistent] (docs/parity.md, section 7).
type Method struct {
	// Key is the text that is hashed, with nginx's variables in it, such as
	// "$host$request_uri" (balancer.Config.Variables lists them). A request may
	// bring a key of its own, balancer.Input.Key, in its place; where all do, the
	// text has no meaning, but must not be empty. Who uses package peer alone
	// puts the key into Request.Key.
	Key string
	// Consistent hashes on the ketama ring: when a server comes or goes, only
	// the keys that must move do.
	Consistent bool
	// MaxPoints bounds the ring, which has 160 points per unit of weight and
	// takes 8 bytes for each. 0: DefaultMaxPoints.
	MaxPoints int

	// WholeRange honours weights of any size. The hash of nginx's first try stays
	// below 32768 and is taken modulo the total weight (quirk Q6): four peers of
	// weight 10000 get 31, 31, 31 and 8 per cent. With WholeRange a hash of 64
	// bits is spread over the whole total, up to 2^63: the key's (FNV-1a), from
	// which the choices after a miss follow (SplitMix64). Shares are by weight,
	// but every key has another peer than nginx would give it, so that a fleet
	// must change over together. It costs some nanoseconds for a long key. Not
	// for Consistent, whose ring honours weights.
	WholeRange bool
	// ByAddress makes the ring of Consistent from the servers' addresses. nginx
	// makes it from their names, so that all addresses of one name are one
	// place on the ring, where the trunk takes them in turn and no key keeps
	// its address. With ByAddress each address has its own keys, and one that
	// comes or goes moves no others. The ring is larger: 160 points per unit of
	// weight for each address. Names that are addresses keep their points.
	ByAddress bool
	// FullWalk lets Consistent go on along the ring until a peer is available.
	// nginx leaves a key to round robin after 20 points whose servers cannot be
	// had, so that with many dead servers such a key has no peer of its own. With
	// FullWalk every key has one as long as a primary peer lives, and a server
	// that dies moves only its own keys. Where all near points are dead it
	// costs one look at each peer, and a step per dead point.
	FullWalk bool
}

// DefaultMaxPoints is the bound of the ring: a sum of weights of 26,214.
const DefaultMaxPoints = 1 << 22

// New returns hash KEY.
func New(key string) Method { return Method{Key: key} }

// NewConsistent returns hash KEY consistent.
func NewConsistent(key string) Method { return Method{Key: key, Consistent: true} }

// ErrNoKey is returned by Build for a method without a key text.
var ErrNoKey = errors.New("trunk: hash: Key is empty; it names what is hashed, such as \"$request_uri\"")

// Build implements peer.Method: it makes the ring or the ranges. ErrNoKey, or a
// *peer.ConfigError for an option that is not for this kind or a ring beyond MaxPoints.
func (m Method) Build(set *peer.Set) (peer.Selector, error) {
	if err := m.check(); err != nil {
		return peer.Selector{}, err
	}
	if m.Consistent {
		return m.buildConsistent(set)
	}
	ranges := [2]pick.Ranges{pick.NewRanges(set, peer.Primary), pick.NewRanges(set, peer.Backup)}
	if m.WholeRange {
		return peer.Selector{Pick: (&whole{ranges}).pick}, nil
	}
	return peer.Selector{Pick: (&plain{ranges}).pick}, nil
}

func (m Method) buildConsistent(set *peer.Set) (peer.Selector, error) {
	of := text(name)
	if m.ByAddress {
		of = address
	}
	s, err := newConsistent(set, of, m.MaxPoints)
	if err != nil {
		return peer.Selector{}, err
	}
	if m.FullWalk {
		return peer.Selector{Pick: newWalk(s).pick, Explain: s.explain}, nil
	}
	return peer.Selector{Pick: s.pick, Explain: s.explain}, nil
}

func (m Method) check() error {
	refuse := func(field, reason string) error {
		return &peer.ConfigError{Server: -1, Field: "hash.Method." + field, Value: true, Reason: reason}
	}
	switch {
	case m.Key == "":
		return ErrNoKey
	case m.MaxPoints < 0:
		return &peer.ConfigError{Server: -1, Field: "hash.Method.MaxPoints", Value: m.MaxPoints, Reason: "must be at least 0; 0 means DefaultMaxPoints"}
	case m.WholeRange && m.Consistent:
		return refuse("WholeRange", "is not for Consistent, whose ring honours weights")
	case m.ByAddress && !m.Consistent:
		return refuse("ByAddress", "is for the ring of Consistent")
	case m.FullWalk && !m.Consistent:
		return refuse("FullWalk", "is for the ring of Consistent")
	}
	return nil
}

// Describe implements peer.Method.
func (m Method) Describe() peer.Description {
	d := peer.Description{Directive: []string{"hash", m.Key}, Remedies: fields.Set(m, "Key Consistent"), BackupsFirst: true,
		Key: m.Key, ByWeight: !m.Consistent, Lint: m.lint}
	if m.Consistent {
		d.Directive = append(d.Directive, "consistent")
	}
	return d
}

// hashes is the number of hashes of nginx's first try.
const hashes = 1 << 15

func (m Method) lint(servers []peer.Server, warn lint.Warn) {
	if !m.Consistent && !m.WholeRange {
		lint.LargeWeights(servers, "hash", hashes, warn)
	}
	if m.Key == "" || strings.Contains(m.Key, "$") || len(servers) < 2 {
		return
	}
	hint := "write a variable, such as $request_uri"
	if m.Key == "consistent" {
		hint = "the key is missing: write hash KEY consistent"
	}
	warn(lint.ConstantKey, m.Key, fmt.Sprintf("the key %q has no variable: requests that bring no key of their own (Input.Key) all get the same server", m.Key), hint)
}

// String returns the method's line in an upstream block.
func (m Method) String() string { return peer.Describe(m).Name }

type plain struct{ ranges [2]pick.Ranges }

// pick hashes the key, each time with another prefix, until a peer is available.
// The hashes add up over the whole request.
func (s *plain) pick(g *peer.Group, r *peer.Request, now peer.Now) int {
	m := &r.Scratch
	if i, ok := pick.Preset(r, g.Len() < 2 || r.Key == ""); ok {
		return i
	}
	for {
		m.Hash += checksum(prefix(m.Hashes), r.Key) >> 16 & 0x7fff
		m.Hashes++
		i := s.ranges[g.Index()].At(int64(m.Hash) % g.TotalWeight())
		if g.Eligible(i, r, now) {
			r.Rule = peer.HashRange
			return i
		}
		if pick.Missed(r) {
			return peer.RoundRobin
		}
	}
}
