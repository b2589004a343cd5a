package balancertest

import (
	"fmt"
	"sync"

	"github.com/trunklb/trunk/peer"
)

// decisions are those of the upstream, the oldest first: of the kit's own picks
// and of requests through RoundTripper.
type decisions struct {
	mu  sync.Mutex
	all []*peer.Decision
}

// maxDecisions bounds what is remembered: as far back as a test looks.
const maxDecisions = 10_000

// add is the upstream's Explain.OnDecision. Peers are called as the user called them.
func (d *decisions) add(n *peer.Decision) {
	for i := range n.Peers {
		if c := &n.Peers[i]; c.Name != "" {
			c.Addr, c.Name = c.Name, ""
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == maxDecisions {
		d.all = append(d.all[:0], d.all[maxDecisions/2:]...)
	}
	d.all = append(d.all, n)
}

// last returns the newest; nil if there is none.
func (d *decisions) last() *peer.Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return nil
	}
	return d.all[len(d.all)-1]
}

// of returns how the peer of the n-th of the last total attempts was chosen.
func (d *decisions) of(n, total int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	skip := total - n
	for i := len(d.all) - 1; i >= 0; i-- {
		if d.all[i].Winner < 0 {
			continue // no peer was asked
		}
		if skip--; skip == 0 {
			return fmt.Sprint(d.all[i])
		}
	}
	return "nothing is known of it"
}
