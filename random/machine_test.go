package random_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/random"
)

// TestAgreesWithTheModel runs the literal models of random and of random two
// beside them, with the same draws.
func TestAgreesWithTheModel(t *testing.T) {
	tests := []struct {
		name   string
		method random.Method
		model  model.Method
	}{
		{"random", random.New(), model.Random},
		{"random two", random.NewTwo(), model.RandomTwo},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			machine.Check(t, func(choose machine.Choose) machine.Config {
				return machine.Config{
					Servers: machine.RandomServers(choose, machine.Limits{}),
					Method:  test.method,
					Model:   model.Config{Method: test.model, Stream: choose("stream", 0, 1) == 1},
				}
			})
		})
	}
}
