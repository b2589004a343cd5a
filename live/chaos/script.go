package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"
)

// A step of a world's script is what happens just before one of its calls.
type step struct {
	name string
	f    func(*world)
}

const setChanges = "the set changes"

// drawScript draws some forty steps.
func (w *world) drawScript(r *rand.Rand) {
	w.script = map[int]step{}
	pick := func(healthy bool) *server {
		var of []*server
		for _, s := range w.servers {
			if s.healthy == healthy {
				of = append(of, s)
			}
		}
		if of == nil {
			return nil
		}
		return of[r.IntN(len(of))]
	}
	for range max(4, w.requests/50) {
		sick, well := pick(false), pick(true)
		missing := map[*server]bool{}
		for _, s := range w.servers {
			missing[s] = !s.healthy && r.IntN(2) == 0
		}
		steps := []step{
			{"the clock goes on", func(w *world) { w.offset.Add(int64(11 * time.Second)) }},
			{"the clock goes back", func(w *world) { w.offset.Add(-int64(3 * time.Second)) }},
			{setChanges, func(w *world) { w.update(missing) }},
			{"idle connections are dropped", func(*world) {
				if w.wire.proto == h1 {
					well.dropIdle()
				}
			}},
		}
		if sick != nil {
			steps = append(steps,
				step{"a server dies", func(*world) { sick.die() }},
				step{"a server is deaf", func(*world) { sick.deafen() }},
				step{"a server comes back", func(*world) { sick.die(); sick.start() }},
				step{"a server comes back", func(*world) { sick.die(); sick.start() }},
			)
		}
		st := steps[r.IntN(len(steps))]
		w.changes = w.changes || st.name == setChanges
		w.script[1+r.IntN(w.requests)] = st
	}
}

// update changes the set, or what the name means, to all but those that are missing.
func (w *world) update(missing map[*server]bool) {
	if w.names {
		w.mu.Lock()
		w.flap = w.addresses(missing)
		w.mu.Unlock()
		return
	}
	w.up.Update(context.Background(), w.lines(missing))
}

func (w *world) addresses(missing map[*server]bool) (of []netip.Addr) {
	for _, s := range w.servers {
		if !missing[s] {
			of = append(of, netip.MustParseAddr(s.ip))
		}
	}
	return of
}

// flapping is a Resolver of which every fourth look-up fails.
type flapping world

func (f *flapping) LookupNetIP(_ context.Context, network, _ string) ([]netip.Addr, error) {
	w := (*world)(f)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	if w.up != nil && w.events%4 == 0 {
		return nil, errors.New("chaos: no answer")
	}
	if network == "ip6" {
		return nil, nil
	}
	return append([]netip.Addr(nil), w.flap...), nil
}
