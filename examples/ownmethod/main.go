// The ownmethod example balances by a method of its own, ByLoad: a page in method.go. The
// test beside it shows how such a method is tested; this program, what it is good for.
//
// Of three backends one has a third of the others' speed. Round robin sends each a third of the
// requests, so that the slow one's queue grows and grows. ByLoad learns of it from the answers.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/roundrobin"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

var addrs = []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}

// speed is how many requests a backend completes in the time in which six arrive.
var speed = map[string]int64{"10.0.0.1:80": 3, "10.0.0.2:80": 3, "10.0.0.3:80": 1}

const rounds = 200

func run(ctx context.Context, out io.Writer) error {
	loads := newLoads()
	if err := simulate(ctx, out, roundrobin.New(), loads); err != nil {
		return err
	}
	loads = newLoads()
	return simulate(ctx, out, &ByLoad{loads}, loads)
}

func newLoads() loads {
	l := loads{}
	for _, addr := range addrs {
		l[addr] = &atomic.Int64{}
	}
	return l
}

// simulate sends requests to backends that are queues, and shows what has become of these.
func simulate(ctx context.Context, out io.Writer, method peer.Method, loads loads) error {
	config := balancer.Config{Name: "backend", Method: method}
	for _, addr := range addrs {
		config.Servers = append(config.Servers, balancer.Server{Addr: addr})
	}
	up, err := balancer.New(ctx, config)
	if err != nil {
		return err
	}
	defer up.Close()
	last := &balancer.Decision{}
	ctx = balancer.WithDecisions(ctx, func(d *balancer.Decision) { last = d })
	longest := int64(0)
	for range rounds {
		for range 6 {
			try := up.Start(ctx, balancer.Input{})
			if !try.Next() {
				return try.Err()
			}
			queue := loads[try.Peer().Server.Addr]
			longest = max(longest, queue.Add(1)) // the answer says how long it is
			try.Done(nil)
			try.Close()
		}
		for addr, queue := range loads {
			queue.Store(max(0, queue.Load()-speed[addr]))
		}
	}
	fmt.Fprintf(out, "%s: the longest queue was %d\n", last.Method, longest)
	for _, p := range up.Snapshot().Peers {
		fmt.Fprintf(out, "  %s got %d\n", p.Server.Addr, p.Gets)
	}
	fmt.Fprintf(out, "the last choice:\n%s\n\n", last)
	return nil
}
