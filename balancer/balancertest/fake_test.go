package balancertest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeTB is a test whose messages can be looked at.
type fakeTB struct {
	testing.TB // not asked for anything
	messages   []string
	fatal      bool
	cleanups   []func()
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Errorf(s string, args ...any) {
	f.messages = append(f.messages, fmt.Sprintf(s, args...))
}

func (f *fakeTB) Fatalf(s string, args ...any) {
	f.Errorf(s, args...)
	f.fatal = true
	runtime.Goexit()
}

// run runs a test and returns what it says.
func run(test func(t testing.TB)) *fakeTB {
	f := &fakeTB{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		test(f)
	}()
	<-done
	return f
}

// says checks that a test fails with exactly one message.
func says(t *testing.T, want string, test func(t testing.TB)) {
	t.Helper()
	f := run(test)
	require.Len(t, f.messages, 1, "messages")
	require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(f.messages[0]))
}
