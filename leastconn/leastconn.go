// Package leastconn is nginx's least_conn: the peer with the fewest requests
// in relation to its weight.
package leastconn

import (
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/peer"
)

// Method is least_conn (docs/parity.md, section 7).
type Method struct{}

// New returns least_conn.
func New() Method { return Method{} }

// Build implements peer.Method. It never fails.
func (Method) Build(*peer.Set) (peer.Selector, error) {
	return peer.Selector{Pick: choose, ComparesConns: true}, nil
}

// Describe implements peer.Method.
func (Method) Describe() peer.Description { return peer.Description{Directive: []string{"least_conn"}} }

// String returns the method's line in an upstream block.
func (m Method) String() string { return peer.Describe(m).Name }

// choose takes the first peer with the smallest conns / weight. If others have
// the same ratio the trunk chooses among them; else no weight moves.
func choose(g *peer.Group, r *peer.Request, now peer.Now) int {
	if i, ok := pick.Preset(r, g.Single()); ok {
		return i
	}
	return g.Least(r, now)
}
