package recording_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow further between collections: the tests allocate much
// and keep little, and at Go's default the collector takes a third of their CPU time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
