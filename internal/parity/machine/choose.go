package machine

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/engine"
)

// Choose decides something: an integer from least to most. The label is for
// the report of a failed run.
type Choose func(label string, least, most int) int

// chance is true once in n times; never if n is less than 2.
func (c Choose) chance(label string, n int) bool { return n > 1 && c(label, 1, n) == n }

// oneOf chooses from a list.
func oneOf[T any](c Choose, label string, list ...T) T {
	return list[c(label, 0, len(list)-1)]
}

// Check is a property test: machines of the configurations that config makes
// take random steps.
func Check(t *testing.T, config func(Choose) Config) {
	t.Helper()
	defer keepEngine()()
	rapid.Check(t, func(t *rapid.T) {
		choose := Choose(func(label string, least, most int) int {
			return rapid.IntRange(least, most).Draw(t, label)
		})
		m := New(t, config(choose), choose)
		actions := map[string]func(*rapid.T){"": func(*rapid.T) { m.Agree() }}
		for _, step := range Steps {
			actions[step.Name] = func(*rapid.T) { step.Do(m) }
		}
		t.Repeat(actions)
	})
}

// keepEngine returns what undoes the choice of an engine that New makes.
func keepEngine() func() {
	most := engine.ScanMost
	return func() { engine.ScanMost = most }
}

// Fuzz is the same with choices made from bytes: the first ones make the
// configuration, the others the steps, until there are no more.
func Fuzz(t *testing.T, data []byte, config func(Choose) Config) {
	t.Helper()
	defer keepEngine()()
	choose := Choose(func(_ string, least, most int) int {
		n := 0
		for span := most - least; span > 0 && len(data) > 0; span >>= 8 {
			n, data = n<<8|int(data[0]), data[1:]
		}
		return least + n%(most-least+1)
	})
	m := New(t, config(choose), choose)
	for len(data) > 0 {
		Steps[choose("step", 0, len(Steps)-1)].Do(m)
		m.Agree()
	}
}
