package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trunklb/trunk/peer"
)

// So do the plain loop in C and the plain least_conn.
func TestLoopsPickAlike(t *testing.T) {
	for _, h := range []health{healthy, oneDead, halfDead, failing} {
		for _, w := range allWeights {
			s := scenario{n: 30, weights: w, health: h}
			for _, pair := range [][2]string{{"plain loop", "C loop"}, {"plain least_conn", "trunk least_conn"}, {"plain least_conn", "trunk least_conn, always scan"}} {
				list := named(pair[:]...)
				if len(list) < 2 {
					continue // without cgo
				}
				if a, b := alike(t, list[0], s), alike(t, list[1], s); !bytes.Equal(a, b) {
					t.Errorf("%v: %v differ", s, pair)
				}
			}
		}
	}
}

// alike is the peers that a contender gives to requests, of which it holds up to 50.
func alike(t *testing.T, c contender, s scenario) (list []byte) {
	made, err := c.build(s)
	if err != nil {
		t.Fatal(err)
	}
	var got [50]int
	for k := range 2000 {
		slot := k
		if k >= len(got) {
			slot = k * k % len(got)
			made.done(slot, got[slot])
		}
		i := made.pick(slot)
		got[slot] = i
		if u, ok := made.(*trunkTarget); ok {
			p, _ := u.up.Peer(&u.held[slot])
			i = p.Index
		}
		list = append(list, byte(i))
	}
	return list
}

// What is compared does the same: plain and trunk, with both engines, pick the
// same peers in all scenarios.
func TestPlainPicksAsTrunk(t *testing.T) {
	for _, n := range []int{3, 10, 100, 1000} {
		for _, w := range allWeights {
			for _, h := range []health{healthy, oneDead, halfDead, failing, retried} {
				s := scenario{n: n, weights: w, health: h}
				t.Run(s.String(), func(t *testing.T) {
					want := picksOfPlain(t, s)
					for name, most := range map[string]int{"scan": neverQueues, "queues": alwaysQueues} {
						if got := picksOfTrunk(t, s, most); !bytes.Equal(got, want) {
							t.Errorf("%s differs", name)
						}
					}
				})
			}
		}
	}
}

const compared = 3000

func picksOfPlain(t *testing.T, s scenario) (list []byte) {
	target, err := newPlain(s)
	if err != nil {
		t.Fatal(err)
	}
	p := target.(*plainTarget)
	for range compared {
		failed := p.fails()
		i := p.get(none)
		list = append(list, byte(i), byte(i>>8))
		if p.retry {
			p.free(i, false)
			i = p.get(i)
			list = append(list, byte(i), byte(i>>8))
		}
		p.free(i, failed)
	}
	return list
}

func picksOfTrunk(t *testing.T, s scenario, most int) (list []byte) {
	target, err := newTrunk(s, nil, most)
	if err != nil {
		t.Fatal(err)
	}
	var r peer.Request
	get := func() {
		must(target.up.Get(&r))
		p, _ := target.up.Peer(&r)
		list = append(list, byte(p.Index), byte(p.Index>>8))
	}
	for range compared {
		outcome := peer.OK
		if target.fails() {
			outcome = peer.Failed
		}
		must(target.up.Begin(&r))
		get()
		if target.retry {
			must(target.up.Free(&r, peer.Next))
			get()
		}
		must(target.up.Free(&r, outcome))
	}
	return list
}

func TestNothingIsAllocated(t *testing.T) {
	for _, n := range []int{3, 100, 1000} {
		for _, h := range []health{healthy, oneDead, halfDead, failing, retried} {
			s := scenario{n: n, weights: upTo10, health: h}
			target, err := trunkRoundRobin(s)
			if err != nil {
				t.Fatal(err)
			}
			work := target.worker()
			work(2 * n)
			if got := testing.AllocsPerRun(10, func() { work(100) }); got != 0 {
				t.Errorf("%v: %v allocations in 100 requests", s, got)
			}
		}
	}
}

// All contenders can be set up and used, and the page has a place for each table.
func TestContendersWork(t *testing.T) {
	quick := timing{slice: 10 * time.Microsecond, rounds: 1}
	for _, s := range []scenario{{n: 3, weights: equal}, {n: 20, weights: upTo10}, {n: 20, weights: equal, health: failing}, {n: 20, weights: equal, health: retried}} {
		for i, cell := range compare(quick, s, contenders) {
			if cell.ok != contenders[i].takesPart(s) {
				t.Errorf("%v: %s", s, contenders[i].name)
			}
		}
	}
}

func TestPageKeepsWhatIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	const before = "a\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nb\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	var p page
	p.add("x", "new\n")
	if err := p.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "a\n<!-- bench:x -->\nnew\n<!-- /bench:x -->\nb\n" {
		t.Errorf("%q, %v", got, err)
	}
	p.add("y", "new\n")
	if p.write(path) == nil {
		t.Error("a part without a place was not refused")
	}
}
