// Rolling is a deploy under load: ten servers are replaced one after the other, while
// clients go on asking. No request is lost, none has to be sent twice, and no server gets
// a burst.
//
//	go run ./examples/rolling
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/trunklb/trunk/balancer"
)

const (
	peers   = 10
	clients = 16
	perStep = 500 // requests between two steps
)

func main() {
	r, err := deploy(context.Background())
	if err == nil {
		err = r.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rolling:", err)
		os.Exit(1)
	}
}

// step is what happened while one server was replaced.
type step struct {
	name                    string
	requests, fewest, most  int // in all, and at a server that was in all the time
	lost, repeated, drained int // drained: requests that the old server still had
}

// result is the whole deploy.
type result struct {
	steps []step
	total step
}

// deploy replaces ten servers under load.
func deploy(ctx context.Context) (*result, error) {
	f := &fleet{}
	defer f.close()
	c := balancer.Config{Name: "backend"}
	for range peers {
		s, err := f.start("v1")
		if err != nil {
			return nil, err
		}
		c.Servers = append(c.Servers, balancer.Server{Addr: s.addr})
	}
	up, err := balancer.New(ctx, c)
	if err != nil {
		return nil, err
	}
	defer up.Close()
	l := newLoad(up)
	defer l.stop()

	r := &result{}
	l.wait(perStep)
	r.add(l.step("before", 0))
	for i, old := range f.servers[:peers:peers] {
		held, err := replace(ctx, up, f, old)
		if err != nil {
			return nil, err
		}
		l.wait(perStep)
		r.add(l.step(fmt.Sprintf("server %d", i+1), held))
	}
	l.wait(perStep)
	r.add(l.step("after", 0))
	return r, nil
}

// replace is the whole of it: no new requests for the old server, wait for those
// that it has, stop it, and let the new one take its place.
func replace(ctx context.Context, up *balancer.Upstream, f *fleet, old *server) (held int, err error) {
	if err := up.UpdateServer(ctx, old.addr, func(s *balancer.Server) { s.Drain = true }); err != nil {
		return 0, err
	}
	for _, s := range up.Snapshot().Peers {
		if s.Server.Addr == old.addr {
			held = int(s.Conns)
		}
	}
	if err := up.WaitDrained(ctx, old.addr); err != nil {
		return 0, err
	}
	old.close()
	fresh, err := f.start("v2")
	if err != nil {
		return 0, err
	}
	return held, up.UpdateServer(ctx, old.addr, func(s *balancer.Server) { *s = balancer.Server{Addr: fresh.addr} })
}

func (r *result) add(s step) {
	r.steps = append(r.steps, s)
	r.total.requests += s.requests
	r.total.lost += s.lost
	r.total.repeated += s.repeated
}

func (r *result) print(out io.Writer) error {
	fmt.Fprintf(out, "%-10s %9s %12s %12s %9s %6s %6s\n", "", "requests", "least at one", "most at one", "drained", "twice", "lost")
	for _, s := range r.steps {
		fmt.Fprintf(out, "%-10s %9d %12d %12d %9d %6d %6d\n", s.name, s.requests, s.fewest, s.most, s.drained, s.repeated, s.lost)
	}
	_, err := fmt.Fprintf(out, "\n%d servers were replaced under %d requests of %d clients: %d were sent twice, %d were lost.\n",
		peers, r.total.requests, clients, r.total.repeated, r.total.lost)
	return err
}
