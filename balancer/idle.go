package balancer

import (
	"context"
	"fmt"
	"sync"

	"github.com/trunklb/trunk/internal/conflex"
)

// WaitDrained waits until no request holds a peer of an address any more: then the
// process behind it can end without harm. The peers must have been removed, or be
// Down or Drain. The address is that of a server line or, where the line has a name,
// that or one of its addresses. One that no peer has, or has any more, is drained.
//
// The error is the context's, or wraps ErrInUse where a peer takes requests
// like any other. Requests that hold a peer for ever, as DialContext's connections
// may, keep it for ever. Config.OnEvent reports the same (peer.PeerIdle). A peer
// with Drain may get requests again that sticky binds to it.
func (u *Upstream) WaitDrained(ctx context.Context, addr string) error {
	for first := true; ; first = false {
		again := u.idles.wait()
		held, inUse := u.holding(addr)
		switch {
		case held == 0 && inUse && first:
			return fmt.Errorf("%w: %s", ErrInUse, addr)
		case held == 0:
			return nil
		}
		select {
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// held counts the requests that hold peers, removed ones too.
func (u *Upstream) held() (n int64) {
	for _, p := range u.peers.Snapshot().Peers {
		n += p.Conns
	}
	return n
}

// holding counts the requests that hold the peers of an address. inUse
// reports that one of these peers is neither removed nor down nor draining.
func (u *Upstream) holding(addr string) (held int64, inUse bool) {
	text := printed(addr)
	for _, p := range u.peers.Snapshot().Peers {
		switch s := &p.Server; {
		case s.Addr != addr && s.Addr != text && s.Name != addr:
		case p.Removed || s.Down || s.Drain:
			held += p.Conns
		default:
			inUse = true
		}
	}
	return held, inUse
}

// printed returns an address as peers have it; itself if it is none.
func printed(addr string) string {
	if a, refusal := conflex.ParseAddr(addr, 80); refusal == "" {
		return a.String()
	}
	return addr
}

// idles wakes those that wait for peers to be idle. Goroutines may share it.
type idles struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next idle peer; nil: no caller waits
}

func (d *idles) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next == nil {
		d.next = make(chan struct{})
	}
	return d.next
}

func (d *idles) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next != nil {
		close(d.next)
		d.next = nil
	}
}
