// Package lint has the warnings that several methods share; see peer.Description.Lint.
package lint

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/trunklb/trunk/peer"
)

// The codes of the methods' warnings. Package balancer explains them.
const (
	WeightsBeyondHash = "weights-beyond-hash"
	RandomTwoWeights  = "random-two-weights"
	ConstantKey       = "constant-key"
)

// Warn is what peer.Description.Lint calls.
type Warn = func(code, word, message, hint string)

// Name returns what a server is called: its name, or else its address.
func Name(s *peer.Server) string { return cmp.Or(s.Name, s.Addr) }

// Weight returns a server's weight.
func Weight(s *peer.Server) int { return max(s.Weight, 1) }

// LargeWeights warns where a method that spreads so many hashes over the weights, modulo
// their sum, cannot honour them (quirk Q6).
func LargeWeights(servers []peer.Server, method string, hashes uint64, warn Warn) {
	worst, share, fair := worstShare(servers, hashes)
	if worst == nil || share > 0.9*fair {
		return
	}
	warn(WeightsBeyondHash, Name(worst), fmt.Sprintf("the weights are too large for %s: %s gets %.1f %% of the keys instead of %.1f %%",
		method, Name(worst), 100*share, 100*fair), "write smaller weights in the same ratio, use hash KEY consistent, or set WholeRange of the method")
}

// worstShare finds the primary server that loses most when m hashes are spread
// over the ranges of the weights, modulo their sum.
func worstShare(servers []peer.Server, m uint64) (worst *peer.Server, share, fair float64) {
	var total uint64
	for i := range servers {
		if s := &servers[i]; !s.Backup {
			sum, carry := bits.Add64(total, uint64(Weight(s)), 0)
			if carry != 0 {
				return nil, 0, 0
			}
			total = sum
		}
	}
	var from uint64
	least := 1.0
	for i := range servers {
		s := &servers[i]
		if s.Backup {
			continue
		}
		w := uint64(Weight(s))
		// Every whole turn gives w hashes; the last, broken one reaches m % total.
		n := m/total*w + min(max(m%total, from), from+w) - from
		from += w
		got, due := float64(n)/float64(m), float64(w)/float64(total)
		if got/due < least {
			worst, share, fair, least = s, got, due, got/due
		}
	}
	return worst, share, fair
}
