package main

import (
	"io"
	"net/http"
	"sync"

	"github.com/trunklb/trunk/balancer"
)

// load is clients that ask as fast as they are answered.
type load struct {
	up     *balancer.Upstream
	client http.Client
	wg     sync.WaitGroup

	mu      sync.Mutex
	grown   sync.Cond
	ended   bool
	all     int            // requests since the start
	since   step           // since the last step
	answers map[string]int // by peer, since the last step
	present map[string]bool
}

func newLoad(up *balancer.Upstream) *load {
	l := &load{up: up, answers: map[string]int{}, present: map[string]bool{}}
	l.grown.L = &l.mu
	l.client.Transport = up.RoundTripper(nil)
	l.begin()
	for range clients {
		l.wg.Go(func() {
			for l.ask() {
			}
		})
	}
	return l
}

// ask makes one request.
func (l *load) ask() bool {
	var log balancer.AttemptLog
	r, _ := http.NewRequest("GET", "http://backend/", nil)
	resp, err := l.client.Do(r.WithContext(balancer.WithLog(r.Context(), &log)))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	attempts := log.Attempts()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all++
	l.since.requests++
	if err != nil || resp.StatusCode != 200 {
		l.since.lost++
	} else {
		l.since.repeated += len(attempts) - 1
		l.answers[attempts[len(attempts)-1].Addr]++
	}
	l.grown.Broadcast()
	return !l.ended
}

// wait lets n requests more pass.
func (l *load) wait(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for until := l.all + n; l.all < until; {
		l.grown.Wait()
	}
}

// step returns what has happened since the last one. Only servers that were there
// all the time are compared.
func (l *load) step(name string, drained int) step {
	l.mu.Lock()
	s := l.since
	s.name, s.drained = name, drained
	now := map[string]bool{}
	for _, p := range l.up.Snapshot().Peers {
		now[p.Server.Addr] = true
	}
	for addr := range now {
		if n := l.answers[addr]; l.present[addr] {
			if s.fewest == 0 || n < s.fewest {
				s.fewest = n
			}
			s.most = max(s.most, n)
		}
	}
	l.since, l.answers = step{}, map[string]int{}
	l.mu.Unlock()
	l.begin()
	return s
}

// begin notes who is there.
func (l *load) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.present = map[string]bool{}
	for _, p := range l.up.Snapshot().Peers {
		l.present[p.Server.Addr] = true
	}
}

func (l *load) stop() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.wg.Wait()
}
