package balancer_test

import (
	"testing"
	"time"
)

// eventually waits for what a server's side of a real socket sees a little later.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for range 1000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it never came")
}
