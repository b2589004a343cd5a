// Chaos is a harness that looks for requests that trunk loses, and for healthy peers
// that it takes out, among servers that do everything a server may do wrong.
//
//	cd live && go run ./chaos -for 1h -seed 7
//
// A run is a sequence of worlds (world.go), each drawn from the seed and its number: servers
// that each do their deeds by a list drawn before (server.go, deeds.go; h1.go, h2.go and
// line.go speak the protocols), an upstream over one wire (wire.go), callers (caller.go),
// and a script of what happens between the requests (script.go): servers die and come back,
// the set changes, names flap, the clock steps. So a seed repeats what happens, if not the
// order in which goroutines run; -world repeats one world alone.
//
// The servers write down what they received, and what they did with it (ledger.go). The judge
// (judge.go) compares that with what callers, events and the snapshot say, and calls
// each loss inherent (no balancer could have prevented it), documented (a row of a closed list,
// rows.go) or a fault. A run fails by one fault:
//
//   - no healthy peer is ever counted a failure;
//   - no idempotent request is lost while a healthy peer lives, and none goes on without end;
//   - no request that is not idempotent is processed twice, and no answer is another's;
//   - connections, goroutines, descriptors and memory return to where they were.
//
// gRPC has its place as one more wire.
package main
