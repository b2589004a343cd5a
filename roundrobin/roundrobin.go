// Package roundrobin is nginx's default method: smooth weighted round robin.
//
// It has no arithmetic of its own. All methods fall back into round robin, so
// it lives in package peer, and this is its face.
package roundrobin

import "github.com/trunklb/trunk/peer"

// Method is smooth weighted round robin (docs/parity.md, sections 3 and 5).
type Method struct{}

// New returns round robin, the method of an upstream that names none.
func New() Method { return Method{} }

// Build implements peer.Method. It never fails.
func (Method) Build(*peer.Set) (peer.Selector, error) {
	return peer.Selector{Pick: peer.PickAll}, nil
}

// Describe implements peer.Method.
func (Method) Describe() peer.Description { return peer.Description{RoundRobin: true} }

// String returns the method's name: round robin has no line in an upstream block.
func (m Method) String() string { return peer.Describe(m).Name }
