package roundrobin_test

import (
	"testing"
	"time"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/roundrobin"
)

// TestAgreesWithTheModel runs the literal model of round robin beside it, as the
// method that is named and as the one that is not.
func TestAgreesWithTheModel(t *testing.T) {
	tests := []struct {
		name   string
		method peer.Method
		stream bool
		ticks  time.Duration
	}{
		{name: "named", method: roundrobin.New()},
		{name: "default", method: nil},
		{name: "stream", method: roundrobin.New(), stream: true},
		{name: "with a resolution of 100 ms", method: roundrobin.New(), ticks: 100 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			machine.Check(t, func(choose machine.Choose) machine.Config {
				return machine.Config{
					Servers: machine.RandomServers(choose, machine.Limits{Unit: test.ticks}),
					Method:  test.method,
					Model:   model.Config{Method: model.RoundRobin, Stream: test.stream},
					Options: peer.Options{Resolution: test.ticks},
				}
			})
		})
	}
}
