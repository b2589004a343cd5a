package leasttime_test

import (
	"testing"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/leasttime"
)

// TestAgreesWithTheModel runs the literal model of least_time beside every mode
// of it, http and stream, with inflight and without.
func TestAgreesWithTheModel(t *testing.T) {
	tests := []struct {
		name   string
		stream bool
		mode   leasttime.Mode
		model  model.Time
	}{
		{"http header", false, leasttime.Header, model.Header},
		{"http last_byte", false, leasttime.LastByte, model.LastByte},
		{"stream connect", true, leasttime.Connect, model.Connect},
		{"stream first_byte", true, leasttime.FirstByte, model.FirstByte},
		{"stream last_byte", true, leasttime.LastByte, model.LastByte},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			machine.Check(t, func(choose machine.Choose) machine.Config {
				inflight := choose("inflight", 0, 1) == 1
				return machine.Config{
					Servers: machine.RandomServers(choose, machine.Limits{}),
					Method:  leasttime.Method{Mode: test.mode, Inflight: inflight},
					Model: model.Config{Method: model.LeastTime, Stream: test.stream,
						Time: test.model, Inflight: inflight},
				}
			})
		})
	}
}
