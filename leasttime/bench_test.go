package leasttime_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leasttime"
)

// BenchmarkGetFree is one request: get a peer, free it. No allocation.
func BenchmarkGetFree(b *testing.B) {
	b.Run("header", func(b *testing.B) {
		machine.BenchGetFree(b, leasttime.New(leasttime.Header), 3, 10, 100, 1000)
	})
	b.Run("last_byte-inflight", func(b *testing.B) {
		machine.BenchGetFree(b, leasttime.Method{Mode: leasttime.LastByte, Inflight: true}, 3, 10, 100, 1000)
	})
}
