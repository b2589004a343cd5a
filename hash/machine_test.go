package hash_test

import (
	"testing"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
)

// TestAgreesWithTheModel runs the literal models of hash and of hash consistent
// beside them. The weights are small enough for a ring that is quickly made.
func TestAgreesWithTheModel(t *testing.T) {
	tests := []struct {
		name   string
		method hash.Method
		model  model.Method
		limits machine.Limits
	}{
		{"plain", hash.New("$uri"), model.Hash, machine.Limits{}},
		{"consistent", hash.NewConsistent("$uri"), model.HashConsistent,
			machine.Limits{MaxPeers: 150, MaxWeight: 3, SharedNames: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			machine.Check(t, func(choose machine.Choose) machine.Config {
				return machine.Config{
					Servers: machine.RandomServers(choose, test.limits),
					Method:  test.method,
					Model:   model.Config{Method: test.model, Stream: choose("stream", 0, 1) == 1},
				}
			})
		})
	}
}
