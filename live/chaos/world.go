package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/port"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// patience is each timeout of a try. It is long for the machine, so that a healthy peer never
// meets it; where the machine is stalled for long, the judge knows.
const patience = 2 * time.Second

// A world is an upstream among its servers, with callers and a script.
type world struct {
	seed   uint64
	number int

	wire               wire
	parity             bool
	method             peer.Method
	on                 balancer.Kind
	off, nonIdempotent bool
	tries              int
	buffer             int64
	names              bool // all servers are the addresses of one name
	panics             bool // hooks panic
	changes            bool // the set changes
	workers            int
	requests           int

	servers []*server
	ledger  *ledger
	script  map[int]step
	up      *balancer.Upstream
	send    func(*call)

	ctx    context.Context
	cancel context.CancelFunc
	offset atomic.Int64 // what the clock has been stepped by
	stall  atomic.Int64 // the longest time in which the machine stood still

	mu     sync.Mutex
	failed map[string]int // PeerFailed events by address
	events int
	flap   []netip.Addr // what the name means now
	calls  []*call
}

// newWorld draws a world.
func newWorld(seed uint64, number, requests int) *world {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	w := &world{seed: seed, number: number, requests: requests, ledger: &ledger{marks: map[int][]mark{}},
		failed: map[string]int{}, wire: wires[number%len(wires)], parity: number/len(wires)%2 == 1,
		workers: 4 + r.IntN(13), names: r.IntN(4) == 0, panics: r.IntN(4) == 0}
	w.method = []peer.Method{nil, nil, leastconn.New(), leasttime.New(leasttime.LastByte), hash.New("$arg_id"),
		hash.NewConsistent("$arg_id"), random.New(), random.NewTwo()}[r.IntN(8)]
	const all = balancer.KindError | balancer.KindTimeout | balancer.KindInvalidHeader | balancer.KindHTTP503 | balancer.KindHTTP504 | balancer.KindHTTP429
	switch n := r.IntN(8); {
	case n == 7:
		w.off = true
	case n > 2:
		w.on, w.nonIdempotent = all, n == 6
	}
	if r.IntN(5) == 0 {
		w.tries = 2
	}
	if r.IntN(3) == 0 {
		w.buffer = 1 << 20
	}
	w.drawServers(r)
	w.drawScript(r)
	return w
}

// drawServers draws one to three healthy servers and up to three others.
func (w *world) drawServers(r *rand.Rand) {
	healthy, others := 1+r.IntN(3), r.IntN(4)
	for i := range healthy + others {
		s := &server{name: fmt.Sprintf("sick%d", i-healthy), ip: "127.0.0.1", proto: w.wire.proto, tls: w.wire.serverTLS(), seed: r.Uint64(),
			ledger: w.ledger, did: map[*deed]int{}, conns: map[net.Conn]bool{}, shared: w.names}
		if w.names {
			s.ip = fmt.Sprintf("127.0.0.%d", i+1)
		}
		if s.healthy = i < healthy; s.healthy {
			s.name = fmt.Sprintf("healthy%d", i)
		} else if r.IntN(3) == 0 {
			of := deedsOf(w.wire.proto, false)
			s.always = of[r.IntN(len(of))]
			s.name += " (always " + s.always.name + ")"
		}
		w.servers = append(w.servers, s)
	}
	r.Shuffle(len(w.servers), func(i, j int) { w.servers[i], w.servers[j] = w.servers[j], w.servers[i] })
}

func (w *world) String() string {
	mode := "defaults"
	if w.parity {
		mode = "NginxParity"
	}
	method := "round robin"
	if w.method != nil {
		method = fmt.Sprint(w.method)
	}
	var names []string
	for _, s := range w.servers {
		names = append(names, s.name)
	}
	on := fmt.Sprint(w.kinds())
	switch {
	case w.off:
		on = "off"
	case w.nonIdempotent:
		on += " non_idempotent"
	}
	return fmt.Sprintf("seed %d, world %d: %s, %s, %s, next_upstream %s, tries %d, buffer %d, names %v, hooks panic %v, %d callers, servers: %s",
		w.seed, w.number, w.wire.name, mode, method, on, w.tries, w.buffer, w.names, w.panics, w.workers, strings.Join(names, ", "))
}

func (w *world) scheme() string {
	if w.wire.tls {
		return "https"
	}
	return "http"
}

// longest is how long a call can take: each peer twice, with all its timeouts.
func (w *world) longest() time.Duration {
	return time.Duration(2*len(w.servers)+1) * 2 * patience
}

// kinds is what is passed on to another peer.
func (w *world) kinds() balancer.Kind {
	if w.on == 0 && !w.off {
		return balancer.KindError | balancer.KindTimeout
	}
	return w.on
}

// run plays the world and judges it.
func (w *world) run() (*verdict, error) {
	before := count()
	stop, err := w.start()
	if err != nil {
		return nil, err
	}
	var next atomic.Int64
	var callers sync.WaitGroup
	w.calls = make([]*call, w.requests+1)
	for range w.workers {
		callers.Go(func() {
			for {
				n := int(next.Add(1))
				if n > w.requests || w.ctx.Err() != nil {
					return
				}
				if f := w.script[n].f; f != nil {
					f(w)
				}
				c := w.newCall(n)
				w.do(c)
				w.calls[n] = c
				if c.endless {
					w.cancel() // it would go on so for all: one is enough
				}
			}
		})
	}
	callers.Wait()
	v := w.judge()
	stop()
	v.leaks(w, before)
	return v, nil
}

// start makes servers and upstream.
func (w *world) start() (stop func(), err error) {
	w.ctx, w.cancel = context.WithCancel(context.Background())
	var common *port.Port
	closePorts := func() {}
	for _, s := range w.servers {
		p := common
		if p == nil {
			if p, err = port.New(); err != nil {
				return nil, err
			}
			last := closePorts
			closePorts = func() { last(); p.Close() }
			if w.names {
				common = p
			}
		}
		s.port = p
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	heart := w.heartbeat()
	if w.up, err = balancer.New(context.Background(), w.config()); err != nil {
		return nil, err
	}
	send, closeIdle := w.wire.open(w)
	w.send = send
	return func() {
		w.cancel()
		w.up.Close()
		closeIdle()
		for _, s := range w.servers {
			s.stop()
		}
		heart()
		closePorts()
	}, nil
}

// config is that of the upstream.
func (w *world) config() balancer.Config {
	c := balancer.Config{Name: upstreamName, Method: w.method, Servers: w.lines(nil), OnEvent: w.event,
		Retry: balancer.Retry{On: w.on, Off: w.off, NonIdempotent: w.nonIdempotent, Tries: w.tries, BufferBody: w.buffer,
			ConnectTimeout: patience, SendTimeout: patience, ReadTimeout: patience, DeadlineCounts: balancer.NeverCounts}}
	start := time.Now()
	c.Clock = func() time.Duration {
		return time.Duration(start.UnixNano()) + time.Since(start) + time.Duration(w.offset.Load())
	}
	if w.names {
		c.Resolver, c.ResolveInterval = (*flapping)(w), 20*time.Millisecond
		w.flap = w.addresses(nil)
	}
	if w.panics {
		c.Explain = balancer.Explain{Share: 0.1, OnDecision: func(*balancer.Decision) { panic("chaos: OnDecision") }}
	}
	if w.parity {
		c = balancer.NginxParity(c)
	}
	return c
}

// lines are the servers without those that are missing. The healthy ones are always there.
func (w *world) lines(missing map[*server]bool) (lines []balancer.Server) {
	if w.names {
		return []balancer.Server{{Addr: fmt.Sprintf("all:%d", w.servers[0].port.Number()), Resolve: true, MaxFails: w.maxFails()}}
	}
	for _, s := range w.servers {
		if !missing[s] {
			l := balancer.Server{Addr: s.addr(), Weight: 1 + int(s.seed%3)}
			if s.healthy {
				l.MaxFails = w.maxFails()
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// maxFails of healthy servers: under NginxParity a kept-alive connection that was dead is
// counted, by the way of nginx, and must not take the peer out.
func (w *world) maxFails() int {
	if w.parity {
		return balancer.NoMaxFails
	}
	return 0
}

// event is the OnEvent hook.
func (w *world) event(e balancer.Event) {
	w.mu.Lock()
	w.events++
	n := w.events
	if e.Kind == peer.PeerFailed {
		w.failed[e.Peer.Server.Addr]++
	}
	w.mu.Unlock()
	if w.panics && n%7 == 0 {
		panic("chaos: OnEvent")
	}
}

// heartbeat measures for how long the machine was stalled.
func (w *world) heartbeat() (stop func()) {
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		const beat = 10 * time.Millisecond
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			now := time.Now()
			w.stall.Store(max(w.stall.Load(), int64(now.Sub(last)-beat)))
			last = now
		}
	})
	return func() { close(quit); done.Wait() }
}

// at returns the server of an address; nil: none.
func (w *world) at(addr string) *server {
	for _, s := range w.servers {
		if s.addr() == addr {
			return s
		}
	}
	return nil
}

// resources is what must return to where it was.
type resources struct{ goroutines, descriptors int }

func count() resources {
	open, _ := os.ReadDir("/proc/self/fd")
	return resources{runtime.NumGoroutine(), len(open)}
}
