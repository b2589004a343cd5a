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
func (Method) Build(*peer.Set) (peer.Selector, error) { return peer.PickAll{}, nil }

// KeyText implements peer.Method: round robin needs no string.
func (Method) KeyText() string { return "" }

// String returns the method's line in an upstream block; round robin has none.
func (Method) String() string { return "round robin" }
