// Package glue holds the key to what package peer does for trunk's own packages alone.
package glue

// Key is the argument of peer.Upstream.Internal.
type Key struct{}
