package balancer

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// The codes of [Lint].
const (
	// CodeLoneServer: of several servers only one is live, and max_fails
	// failures leave the upstream without any for fail_timeout. A server that
	// is alone in its block is never taken out.
	CodeLoneServer Code = "lone-live-server"
	// CodeLocalhost: localhost is two addresses on most machines, so it is two
	// peers and takes two tries.
	CodeLocalhost Code = "localhost-two-addresses"
	// CodeMaxFailsAboveWeight: a failure takes weight / max_fails from the
	// effective weight, which is nothing when max_fails is above the weight.
	CodeMaxFailsAboveWeight Code = "max-fails-above-weight"
	// CodeTriesBeforeBackup: Retry.Tries ends a request before it can reach a
	// backup.
	CodeTriesBeforeBackup Code = "tries-before-backup"
	// CodeWeightsBeyondHash: the weights are so great that hash or ip_hash
	// cannot honour them (quirk Q6): the later servers get less or nothing.
	CodeWeightsBeyondHash Code = "weights-beyond-hash"
	// CodeRandomTwoWeights: random two does not keep uneven weights while the
	// servers are idle (quirk Q4).
	CodeRandomTwoWeights Code = "random-two-weights"
	// CodeConstantKey: the key has no variable, so all requests that bring none of
	// their own (Input.Key) have the same one and go to the same server.
	CodeConstantKey Code = "constant-key"
	// CodeSharedRoute: two servers have one route; a client that brings it gets
	// the first.
	CodeSharedRoute Code = "shared-route"
)

// Lint looks for what works, as nginx does it, but hardly as intended. It does
// not say whether New takes the configuration. Names are not looked up.
func Lint(c Config) []Warning {
	l := linter{Config: c}
	for i := range c.Servers {
		l.count(&c.Servers[i])
	}
	l.loneServer()
	l.localhost()
	l.maxFails()
	l.tries()
	l.greatWeights()
	l.randomTwo()
	l.constantKey()
	l.routes()
	return l.warnings
}

type linter struct {
	Config
	warnings []Warning
	// live are the servers that are neither down nor draining, by group.
	live [2][]*Server
}

func (l *linter) count(s *Server) {
	if s.Down || s.Drain {
		return
	}
	group := peer.Primary
	if s.Backup {
		group = peer.Backup
	}
	l.live[group] = append(l.live[group], s)
}

func (l *linter) warn(code Code, word, message, hint string) {
	l.warnings = append(l.warnings, Warning{Code: code, Upstream: l.Name, Word: word, Message: message, Hint: hint})
}

func (l *linter) loneServer() {
	if len(l.Servers) < 2 || len(l.live[peer.Primary]) != 1 || len(l.live[peer.Backup]) != 0 {
		return
	}
	s := l.live[peer.Primary][0]
	if s.MaxFails == NoMaxFails || s.FailTimeout == NoFailTimeout || s.Resolve || isName(s.Addr) {
		return
	}
	l.warn(CodeLoneServer, nameOf(s), fmt.Sprintf("%s is the only live server, and max_fails=%d takes it out: then nothing is left for fail_timeout",
		nameOf(s), maxFails(s)),
		"write max_fails=0, or take the servers that are down out of the list: a server that is alone is never taken out")
}

func (l *linter) localhost() {
	for i := range l.Servers {
		s := &l.Servers[i]
		if a, refusal := conflex.ParseAddr(s.Addr, 80); refusal == "" && strings.EqualFold(a.Host, "localhost") {
			l.warn(CodeLocalhost, nameOf(s), "localhost is 127.0.0.1 and ::1 on most machines: two peers, and two tries for one server",
				"write 127.0.0.1 or [::1]")
			return
		}
	}
}

// maxFails looks for servers that a failure does not weaken. The methods that
// never use the effective weight are left out.
func (l *linter) maxFails() {
	if l.Policy.Penalty > 0 {
		return
	}
	switch m := l.Method.(type) {
	case iphash.Method, random.Method:
		return
	case hash.Method:
		if !m.Consistent {
			return
		}
	}
	var names []string
	for i := range l.Servers {
		if s := &l.Servers[i]; s.MaxFails > max(s.Weight, 1) && len(l.Servers) > 1 {
			names = append(names, nameOf(s))
		}
	}
	if names == nil {
		return
	}
	l.warn(CodeMaxFailsAboveWeight, names[0], fmt.Sprintf("max_fails is above the weight of %s: single failures do not lower the share; only the last of max_fails takes the server out",
		list(names)), "multiply all weights until each is at least its max_fails, or set Policy.Penalty")
}

// tries compares the tries of a request with the servers before the backups.
func (l *linter) tries() {
	n := len(l.live[peer.Primary])
	if l.Retry.Tries <= 0 || l.Retry.Tries > n || len(l.live[peer.Backup]) == 0 {
		return
	}
	l.warn(CodeTriesBeforeBackup, "", fmt.Sprintf("a request has %d tries and %d live servers before the backups: it never reaches a backup while these are in",
		l.Retry.Tries, n), fmt.Sprintf("allow at least %d tries, or no limit", n+1))
}

// The greatest first hashes: ip_hash counts modulo 6271, hash has 15 bits.
const (
	ipHashes = 6271
	hashes   = 1 << 15
)

func (l *linter) greatWeights() {
	var m uint64
	name := "hash"
	switch method := l.Method.(type) {
	case iphash.Method:
		if m, name = ipHashes, "ip_hash"; method.WholeRange {
			return
		}
	case hash.Method:
		if m = hashes; method.Consistent || method.WholeRange {
			return
		}
	default:
		return
	}
	worst, share, fair := l.worstShare(m)
	if worst == nil || share > 0.9*fair {
		return
	}
	l.warn(CodeWeightsBeyondHash, nameOf(worst), fmt.Sprintf("the weights are too great for %s: %s gets %.1f %% of the keys instead of %.1f %%",
		name, nameOf(worst), 100*share, 100*fair), "write smaller weights in the same ratio, use hash KEY consistent, or set WholeRange of the method")
}

// worstShare finds the primary server that loses most when m hashes are spread
// over the ranges of the weights, modulo their sum.
func (l *linter) worstShare(m uint64) (worst *Server, share, fair float64) {
	var total uint64
	for i := range l.Servers {
		if s := &l.Servers[i]; !s.Backup {
			sum, carry := bits.Add64(total, uint64(max(s.Weight, 1)), 0)
			if carry != 0 {
				return nil, 0, 0
			}
			total = sum
		}
	}
	var from uint64
	least := 1.0
	for i := range l.Servers {
		s := &l.Servers[i]
		if s.Backup {
			continue
		}
		w := uint64(max(s.Weight, 1))
		// Every whole turn gives w hashes; the last, broken one reaches m % total.
		n := m/total*w + clamp(m%total, from, from+w) - from
		from += w
		got, due := float64(n)/float64(m), float64(w)/float64(total)
		if got/due < least {
			worst, share, fair, least = s, got, due, got/due
		}
	}
	return worst, share, fair
}

func clamp(x, low, high uint64) uint64 { return min(max(x, low), high) }

func (l *linter) randomTwo() {
	if m, ok := l.Method.(random.Method); !ok || !m.Two || m.KeepWeights {
		return
	}
	for _, s := range l.live[peer.Primary] {
		if first := l.live[peer.Primary][0]; max(s.Weight, 1) != max(first.Weight, 1) {
			l.warn(CodeRandomTwoWeights, nameOf(s), "random two inverts uneven weights while the servers are idle: 9:1 becomes about 2:8",
				"write even weights, use least_conn, or set KeepWeights of the method")
			return
		}
	}
}

func (l *linter) constantKey() {
	m, ok := l.Method.(hash.Method)
	if !ok || m.Key == "" || strings.Contains(m.Key, "$") || len(l.Servers) < 2 {
		return
	}
	hint := "write a variable, such as $request_uri"
	if m.Key == "consistent" {
		hint = "the key is missing: write hash KEY consistent"
	}
	l.warn(CodeConstantKey, m.Key, fmt.Sprintf("the key %q has no variable: requests that bring no key of their own (Input.Key) all get the same server", m.Key), hint)
}

func (l *linter) routes() {
	seen := map[string]*Server{}
	for i := range l.Servers {
		s := &l.Servers[i]
		if s.Route == "" {
			continue
		}
		if first := seen[s.Route]; first != nil && first.Backup == s.Backup {
			l.warn(CodeSharedRoute, "route="+s.Route, fmt.Sprintf("%s and %s have the route %q: a client that brings it gets the first, or none while that one is out",
				nameOf(first), nameOf(s), s.Route), "give every server a route of its own")
			continue
		}
		seen[s.Route] = s
	}
}

func isName(addr string) bool {
	a, refusal := conflex.ParseAddr(addr, 80)
	return refusal == "" && a.IsName()
}

func nameOf(s *Server) string {
	if s.Name != "" {
		return s.Name
	}
	return s.Addr
}

func maxFails(s *Server) int {
	if s.MaxFails == 0 {
		return peer.DefaultMaxFails
	}
	return s.MaxFails
}

// list names the first few of many.
func list(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}
