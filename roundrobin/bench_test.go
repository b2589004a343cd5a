package roundrobin_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/roundrobin"
)

// BenchmarkGetFree is one request: get a peer, free it. No allocation.
func BenchmarkGetFree(b *testing.B) {
	machine.BenchGetFree(b, roundrobin.New(), 1, 3, 10, 100, 1000)
	machine.BenchRealClock(b, roundrobin.New(), 3)
}
