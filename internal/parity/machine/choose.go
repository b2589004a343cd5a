package machine

import (
	"runtime/debug"
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
// take random steps, with the model beside them.
func Check(t *testing.T, config func(Choose) Config) {
	t.Helper()
	check(t, config, New)
}

// CheckTwins is the same with a twin beside them, which has the other engine.
func CheckTwins(t *testing.T, config func(Choose) Config) {
	t.Helper()
	check(t, config, NewTwins)
}

func check(t *testing.T, config func(Choose) Config, start func(TB, Config, Choose) *Machine) {
	t.Helper()
	defer keepEngine()()
	// The machines allocate much and keep little: at Go's default the collector
	// takes half of their CPU time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	rapid.Check(t, func(t *rapid.T) {
		choose := Choose(func(label string, least, most int) int {
			return rapid.IntRange(least, most).Draw(t, label)
		})
		m := start(t, config(choose), choose)
		actions := map[string]func(*rapid.T){"": func(*rapid.T) { m.Agree() }}
		for _, step := range m.steps {
			actions[step.Name] = func(*rapid.T) { step.Do(m) }
		}
		t.Repeat(actions)
	})
}

// keepEngine returns what undoes the choice of an engine that New makes.
func keepEngine() func() {
	most, steps := engine.ScanMost, engine.MaxSteps
	return func() { engine.ScanMost, engine.MaxSteps = most, steps }
}

// Fuzz is Check with choices made from bytes: the first ones make the
// configuration, the others the steps, until there are no more.
func Fuzz(t *testing.T, data []byte, config func(Choose) Config) {
	t.Helper()
	fuzz(t, data, config, New)
}

// FuzzTwins is the same with a twin.
func FuzzTwins(t *testing.T, data []byte, config func(Choose) Config) {
	t.Helper()
	fuzz(t, data, config, NewTwins)
}

func fuzz(t *testing.T, data []byte, config func(Choose) Config, start func(TB, Config, Choose) *Machine) {
	t.Helper()
	defer keepEngine()()
	// The machines allocate much and keep little: at Go's default the collector
	// takes half of their CPU time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	choose := Choose(func(_ string, least, most int) int {
		n := 0
		for span := most - least; span > 0 && len(data) > 0; span >>= 8 {
			n, data = n<<8|int(data[0]), data[1:]
		}
		return least + n%(most-least+1)
	})
	m := start(t, config(choose), choose)
	for len(data) > 0 {
		m.steps[choose("step", 0, len(m.steps)-1)].Do(m)
		m.Agree()
	}
}
