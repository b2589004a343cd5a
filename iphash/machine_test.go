package iphash_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/iphash"
)

// TestAgreesWithTheModel runs the literal model of ip_hash beside it.
func TestAgreesWithTheModel(t *testing.T) {
	machine.Check(t, func(choose machine.Choose) machine.Config {
		return machine.Config{
			Servers: machine.RandomServers(choose, machine.Limits{}),
			Method:  iphash.New(),
			Model:   model.Config{Method: model.IPHash},
		}
	})
}
