// Package guard keeps panics of users' hooks from harming who calls them.
package guard

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Guard counts the panics of hooks that only watch, and keeps the first. The zero value
// is ready. Goroutines may share it.
type Guard struct {
	mu     sync.Mutex
	panics uint64
	first  string
}

// Recover ends a panic. It is to be deferred where the hook is called.
func (g *Guard) Recover() {
	v := recover()
	if v == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.panics++; g.panics == 1 {
		g.first = fmt.Sprintf("%v\n\n%s", v, debug.Stack())
	}
}

// Panics returns how many there were, and of the first one its value and the stack;
// "" if there was none.
func (g *Guard) Panics() (n uint64, first string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.panics, g.first
}
