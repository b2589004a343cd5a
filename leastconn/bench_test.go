package leastconn_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leastconn"
)

// BenchmarkGetFree is one request: get a peer, free it. No allocation.
func BenchmarkGetFree(b *testing.B) {
	machine.BenchGetFree(b, leastconn.New(), 3, 10, 100, 1000)
}
