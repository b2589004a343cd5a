package balancer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/internal/lint"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// The codes of [Lint], and of New.
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
	// CodeWeightsBeyondHash: the weights are so large that hash or ip_hash
	// cannot honour them (quirk Q6): the later servers get less or nothing.
	CodeWeightsBeyondHash Code = lint.WeightsBeyondHash
	// CodeRandomTwoWeights: random two does not keep uneven weights while the
	// servers are idle (quirk Q4).
	CodeRandomTwoWeights Code = lint.RandomTwoWeights
	// CodeConstantKey: the key has no variable, so all requests that bring none of
	// their own (Input.Key) have the same one and go to the same server.
	CodeConstantKey Code = lint.ConstantKey
	// CodeSharedRoute: two servers have one route; a client that brings it gets
	// the first.
	CodeSharedRoute Code = "shared-route"
	// CodeNameTries: a name can be several peers, which may use up Retry.Tries before
	// a backup is asked.
	CodeNameTries Code = "name-tries"
	// CodeOrder: the method counts places in the list, and a name's addresses come in
	// an order that may differ between hosts.
	CodeOrder Code = "order-of-addresses"
	// CodePlaceholder: an address to which nothing can be sent, such as the 0.0.0.1
	// beside balancer_by_lua.
	CodePlaceholder Code = "placeholder-address"
	// CodeCookieInsecure: browsers drop a cookie with SameSite=None that is not Secure.
	CodeCookieInsecure Code = "cookie-samesite-none"
	// CodeCookiePath: a cookie without a path comes back only for URLs in the
	// directory of the one that was answered first.
	CodeCookiePath Code = "cookie-without-path"
	// CodeUnknownVariable: a text has a variable that is neither among those of nginx's
	// that trunk knows nor in Config.Variables. New refuses it.
	CodeUnknownVariable Code = "unknown-variable"
	// CodeName is New's: the name is the host of no URL, so that RoundTripper refuses it.
	CodeName Code = "upstream-name"
	// CodeClientAddress is New's: requests that do not come from a server must bring the
	// client's address along.
	CodeClientAddress Code = "client-address"
)

// Lint looks for what works, as nginx does it, but hardly as intended, and for
// variables that nginx may know and New refuses. It does not say otherwise whether
// New takes the configuration. Names are not looked up.
func Lint(c Config) []Warning {
	l := linter{Config: c, method: peer.Describe(c.Method)}
	for i := range c.Servers {
		l.count(&c.Servers[i])
	}
	l.loneServer()
	l.localhost()
	l.maxFails()
	l.tries()
	l.ofMethod()
	l.routes()
	l.placeholders()
	l.orderOfAddresses()
	l.cookie()
	l.variables()
	return l.warnings
}

type linter struct {
	Config
	method   peer.Description
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
		if isLocalhost(s.Addr) {
			l.warn(CodeLocalhost, nameOf(s), "localhost is 127.0.0.1 and ::1 on most machines: two peers, and two tries for one server",
				"write 127.0.0.1 or [::1]")
			return
		}
	}
}

// maxFails looks for servers that a failure does not weaken. The methods that
// never use the effective weight are left out.
func (l *linter) maxFails() {
	if l.Policy.Penalty > 0 || l.method.ByWeight {
		return
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

// tries compares the tries of a request with the peers before the backups. localhost is
// two, any other name one or more.
func (l *linter) tries() {
	if l.Retry.Tries <= 0 || l.Retry.KeepBackup || len(l.live[peer.Backup]) == 0 {
		return
	}
	n, name := 0, ""
	for _, s := range l.live[peer.Primary] {
		n++
		switch {
		case isLocalhost(s.Addr):
			n++
		case isName(s.Addr):
			name = nameOf(s)
		}
	}
	switch {
	case l.Retry.Tries <= n:
		l.warn(CodeTriesBeforeBackup, "", fmt.Sprintf("a request has %d tries and %d live peers before the backups: it never reaches a backup while these are in",
			l.Retry.Tries, n), fmt.Sprintf("allow at least %d tries, or no limit, or set Retry.KeepBackup", n+1))
	case name != "":
		l.warn(CodeNameTries, name, fmt.Sprintf("a request has %d tries, and %s can be several peers that use them up before a backup is asked",
			l.Retry.Tries, name), "allow more tries, or no limit, or set Retry.KeepBackup")
	}
}

// placeholders looks for addresses to which nothing can be sent: 0.0.0.0/8, but for
// 0.0.0.0, which is this host to some systems.
func (l *linter) placeholders() {
	for i := range l.Servers {
		s := &l.Servers[i]
		a, refusal := conflex.ParseAddr(s.Addr, 80)
		if refusal == "" && a.IP.Is4() && a.IP.As4()[0] == 0 && !a.IP.IsUnspecified() && !s.Down {
			l.warn(CodePlaceholder, nameOf(s), fmt.Sprintf("%s is a placeholder: nothing can be sent to it", nameOf(s)),
				"write the servers that were chosen elsewhere, in Lua say")
		}
	}
}

// orderOfAddresses looks for names under methods that count places in the list: those
// that take backups only above their line, but for random and consistent hashing.
func (l *linter) orderOfAddresses() {
	if d := l.method.Directive; len(d) == 0 || d[0] != "ip_hash" && (d[0] != "hash" || len(d) == 3) {
		return
	}
	for i := range l.Servers {
		if s := &l.Servers[i]; isName(s.Addr) && !s.Resolve {
			l.warn(CodeOrder, nameOf(s), fmt.Sprintf("%s counts places in the list, and the addresses of %s come in an order that may differ between hosts",
				l.method.Name, nameOf(s)), "write addresses, in the order of Canonical, or resolve, or use hash KEY consistent")
			return
		}
	}
}

// cookie looks for sticky cookies that browsers drop or keep back.
func (l *linter) cookie() {
	d := sticky.Describe(l.Sticky).Directive
	if len(d) < 3 || d[1] != "cookie" {
		return
	}
	has := func(word string) bool {
		return slices.ContainsFunc(d[3:], func(s string) bool { return strings.EqualFold(s, word) })
	}
	if has("samesite=none") && !has("secure") {
		l.warn(CodeCookieInsecure, d[2], "browsers drop a cookie with samesite=none that is not secure", "write secure too")
	}
	if !slices.ContainsFunc(d[3:], func(s string) bool { return strings.HasPrefix(s, "path=") }) {
		l.warn(CodeCookiePath, d[2], "the cookie has no path: browsers send it back only for URLs in the directory of the one that set it",
			"write path=/")
	}
}

// variables looks for variables that New refuses.
func (l *linter) variables() {
	texts := []string{l.method.Key}
	if b, err := sticky.New(l.Sticky, &sticky.Options{}); err == nil {
		texts = append(texts, b.Texts()...)
	}
	for _, s := range texts {
		var unknown *VariableError
		if _, err := compile(s, l.Variables); errors.As(err, &unknown) {
			l.warn(CodeUnknownVariable, unknown.Variable, fmt.Sprintf("%s is no variable that trunk knows, and New refuses it", unknown.Variable),
				hintVariable)
		}
	}
}

// ofMethod lets the method speak.
func (l *linter) ofMethod() {
	if l.method.Lint != nil {
		l.method.Lint(l.Servers, func(code, word, message, hint string) { l.warn(Code(code), word, message, hint) })
	}
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

func isLocalhost(addr string) bool {
	a, refusal := conflex.ParseAddr(addr, 80)
	return refusal == "" && strings.EqualFold(a.Host, "localhost")
}

func isName(addr string) bool {
	a, refusal := conflex.ParseAddr(addr, 80)
	return refusal == "" && a.IsName()
}

func nameOf(s *Server) string { return lint.Name(s) }

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
