package leastconn_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/leastconn"
)

// TestAgreesWithTheModel runs the literal model of least_conn beside it.
func TestAgreesWithTheModel(t *testing.T) {
	for name, stream := range map[string]bool{"http": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			machine.Check(t, func(choose machine.Choose) machine.Config {
				return machine.Config{
					Servers: machine.RandomServers(choose, machine.Limits{}),
					Method:  leastconn.New(),
					Model:   model.Config{Method: model.LeastConn, Stream: stream},
				}
			})
		})
	}
}
