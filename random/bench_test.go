package random_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/random"
)

// BenchmarkGetFree is one request: get a peer, free it. No allocation.
func BenchmarkGetFree(b *testing.B) {
	b.Run("one", func(b *testing.B) { machine.BenchGetFree(b, random.New(), 3, 10, 100, 1000) })
	b.Run("two", func(b *testing.B) { machine.BenchGetFree(b, random.NewTwo(), 3, 10, 100, 1000) })
}
