package guard_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/guard"
)

// faulty panics, like what it is printed as.
func faulty(g *guard.Guard, v any) {
	defer g.Recover()
	panic(v)
}

type unprintable struct{}

func (unprintable) Error() string { panic("again") }

func TestPanicsEndHere(t *testing.T) {
	var g guard.Guard
	func() { defer g.Recover() }()
	n, first := g.Panics()
	require.Zero(t, n)
	require.Empty(t, first)

	for _, v := range []any{errors.New("angry"), unprintable{}, nil, "angrier"} {
		faulty(&g, v)
	}
	n, first = g.Panics()
	require.EqualValues(t, 4, n)
	require.Regexp(t, `^angry\n`, first)
	require.Contains(t, first, "guard_test.faulty")

	var u guard.Guard
	faulty(&u, unprintable{})
	_, first = u.Panics()
	require.Contains(t, first, "again")
}

func TestPanicsOfManyGoroutines(t *testing.T) {
	var g guard.Guard
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				faulty(&g, "angry")
			}
		})
	}
	all.Wait()
	n, _ := g.Panics()
	require.EqualValues(t, 800, n)
}
