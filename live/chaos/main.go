package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"time"
)

func main() {
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano())%1_000_000, "what all is drawn from")
	length := flag.Duration("for", time.Minute, "how long to go on")
	world := flag.Int("world", -1, "play this world alone")
	requests := flag.Int("requests", 4000, "calls in each world")
	upTo := flag.Int("faults", 20, "end after so many worlds with faults")
	flag.Parse()
	log.SetOutput(io.Discard) // net/http writes down what peers send unasked

	r := newReport(*seed)
	fmt.Printf("seed %d\n", *seed)
	var err error
	if *world >= 0 {
		err = r.play(*world, *requests)
	} else {
		err = r.playFor(*length, *requests, *upTo)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Println()
	r.write(os.Stdout)
	if r.total() > 0 {
		os.Exit(1)
	}
}

// play plays one world.
func (r *report) play(number, requests int) error {
	w := newWorld(r.seed, number, requests)
	v, err := w.run()
	if err != nil {
		return fmt.Errorf("%v: %w", w, err)
	}
	r.add(w, v)
	return nil
}

// playFor plays worlds until the time is over, and compares the heap at the end with that
// after a first part.
func (r *report) playFor(length time.Duration, requests, upTo int) error {
	start, shown := time.Now(), time.Now()
	var heap, faulty int
	for n := 0; time.Since(start) < length && faulty < upTo; n++ {
		before := r.total()
		if err := r.play(n, requests); err != nil {
			return err
		}
		if r.total() > before {
			faulty++
		}
		if n == 2*len(wires) {
			heap = liveHeap()
		}
		if time.Since(shown) > 10*time.Second {
			shown = time.Now()
			calls, idempotent := r.sums()
			fmt.Printf("%8v  %d worlds, %d calls, %d idempotent, %d faults\n", time.Since(start).Round(time.Second), r.worlds, calls, idempotent, r.total())
		}
	}
	if heap > 0 {
		r.judgeHeap(heap, liveHeap())
	}
	return nil
}

// mayGrow is how much of the heap one run may hold more than another, by chance.
const mayGrow = 8 << 20

func (r *report) judgeHeap(before, after int) {
	if after > before+mayGrow {
		r.found["memory is left"]++
		r.faults = append(r.faults, fmt.Sprintf("the whole run\n  memory is left: %d bytes after the first worlds, %d after the last", before, after))
	}
}

// liveHeap is what is in use after a collection.
func liveHeap() int {
	runtime.GC()
	runtime.GC() // what finalizers and pools have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
