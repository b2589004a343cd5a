package iphash_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/iphash"
)

// BenchmarkGetFree is one request: get a peer, free it. No allocation.
func BenchmarkGetFree(b *testing.B) {
	machine.BenchGetFree(b, iphash.New(), 3, 10, 100, 1000)
}
