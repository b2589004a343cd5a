package nginxconf

import (
	"fmt"
	"strings"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
)

// Codes of [Parse] for the locations that pass to an upstream.
const (
	// CodeRetryDiffers: several locations pass to the upstream, and their
	// proxy_next_upstream and timeouts differ.
	CodeRetryDiffers balancer.Code = "retry-differs"
	// CodeTimeoutZero: a timeout of 0 ends every try at once in nginx; here the
	// default holds.
	CodeTimeoutZero balancer.Code = "timeout-zero"
	// CodeLocation: no location of the name in ParseOptions.Location passes to
	// an upstream.
	CodeLocation balancer.Code = "location-not-found"
)

// A level is a block whose settings the blocks in it inherit: http, server,
// location, if.
type level struct {
	parent   *level
	location string
	settings map[string]setting // by name of the directive
	policies map[string]policy  // by family, once asked for
}

// A setting is the value of one of the directives that make a retry policy.
type setting struct {
	set   bool
	kinds balancer.Kind
	n     int64 // a number, or milliseconds
}

// A policy holds the settings of one family of directives, in the order of
// retryNames.
type policy [7]setting

var retryNames = [len(policy{})]string{"next_upstream", "next_upstream_tries", "next_upstream_timeout",
	"connect_timeout", "send_timeout", "read_timeout", "timeout"}

// policy is what holds on the level: what it says itself, and for the rest what
// holds around it. It is asked for when the section has been read.
func (l *level) policy(family string) policy {
	if l == nil {
		return policy{}
	}
	if pol, known := l.policies[family]; known {
		return pol
	}
	pol := l.parent.policy(family)
	for i, name := range retryNames {
		if s, ok := l.settings[family+name]; ok {
			pol[i] = s
		}
	}
	if l.policies == nil {
		l.policies = map[string]policy{}
	}
	l.policies[family] = pol
	return pol
}

// A pass is a directive that passes requests to an upstream.
type pass struct {
	family string // "proxy_", "fastcgi_", ...
	level  *level
	file   string
	line   int
}

// retryDirective takes note of a directive that says where requests go, or what
// happens when they fail.
func (p *parser) retryDirective(d *conflex.Directive, at position) *ParseError {
	family, name, found := strings.Cut(d.Name(), "_")
	if !found || p.section == nil {
		return nil
	}
	switch family {
	case "proxy", "fastcgi", "uwsgi", "scgi", "grpc", "memcached":
	default:
		return nil
	}
	family += "_"
	switch name {
	case "pass":
		return p.passDirective(d, at, family)
	case "next_upstream":
		return p.nextUpstream(d, at)
	case "next_upstream_tries":
		return p.retryNumber(d, at, conflex.Number, "invalid number")
	case "next_upstream_timeout", "connect_timeout", "read_timeout", "send_timeout":
		return p.retryNumber(d, at, conflex.Millis, "invalid value")
	case "timeout":
		if p.section.stream {
			return p.retryNumber(d, at, conflex.Millis, "invalid value")
		}
	}
	return nil
}

func (l *level) set(name string, s setting) {
	if l.settings == nil {
		l.settings = map[string]setting{}
	}
	s.set = true
	l.settings[name] = s
}

func (p *parser) retryNumber(d *conflex.Directive, at position, read func(string) (int64, bool), invalid string) *ParseError {
	if len(d.Args()) != 1 {
		return p.wrongCount(d)
	}
	if _, twice := at.level.settings[d.Name()]; twice {
		return p.duplicate(d)
	}
	n, ok := read(d.Words[1])
	if !ok {
		return p.invalid(d, invalid, "")
	}
	at.level.set(d.Name(), setting{n: n})
	return nil
}

// nextUpstream reads the kinds; two lines on one level add up, as in nginx.
func (p *parser) nextUpstream(d *conflex.Directive, at position) *ParseError {
	if len(d.Args()) == 0 {
		return p.wrongCount(d)
	}
	s := at.level.settings[d.Name()]
	if p.section.stream {
		switch {
		case len(d.Args()) > 1:
			return p.wrongCount(d)
		case equalName(d.Words[1], "off"):
			s.kinds = balancer.KindOff
		case equalName(d.Words[1], "on"):
			s.kinds = balancer.KindError | balancer.KindTimeout
		default:
			return p.refuse(d, d.Words[1], `invalid value "`+d.Words[1]+`" in "proxy_next_upstream" directive, it must be "on" or "off"`, "")
		}
		at.level.set(d.Name(), s)
		return nil
	}
	for _, word := range d.Args() {
		kind, ok := kindOf(word)
		if !ok {
			return p.refuse(d, word, `invalid value "`+word+`"`, "write kinds such as error timeout http_502")
		}
		s.kinds |= kind
	}
	at.level.set(d.Name(), s)
	return nil
}

// kindOf reads a kind by nginx's name, which it compares without case.
// "updating" is for caches, and nginx takes it here without effect.
func kindOf(word string) (balancer.Kind, bool) {
	if equalName(word, "updating") {
		return 0, true
	}
	for k := balancer.KindError; k <= balancer.KindOff; k <<= 1 {
		if equalName(word, k.String()) {
			return k, true
		}
	}
	return 0, false
}

// passDirective notes where requests go. A name without variables is an
// upstream to nginx, whether or not a block has the name.
func (p *parser) passDirective(d *conflex.Directive, at position, family string) *ParseError {
	if len(d.Args()) != 1 {
		return p.wrongCount(d)
	}
	target, port, ok := passTarget(d.Words[1], family, p.section.stream)
	if !ok {
		return p.refuse(d, d.Words[1], "invalid URL prefix", "write http:// or https:// in front")
	}
	target, variables, dynamic := strings.Cut(target, "$")
	if dynamic && !strings.Contains(target, "/") && !isPathVariable(variables) {
		return nil // the host itself is in a variable
	}
	if !strings.HasPrefix(lower(target), "unix:") {
		if i := strings.IndexAny(target, "/?"); i >= 0 {
			target = target[:i]
		}
	}
	a, reason := conflex.ParseAddr(target, port)
	if dynamic {
		reason = "" // nginx looks at request time
	} else if reason != "" {
		return p.refuse(d, target, fmt.Sprintf(`%s in upstream "%s"`, reason, target), hintAddr(d, target))
	} else if err := p.addReference(d, a); err != nil {
		return err
	}
	key := lower(a.Host)
	p.section.passes[key] = append(p.section.passes[key],
		&pass{family: family, level: at.level, file: p.file(), line: d.Line})
	return nil
}

// isPathVariable reports whether what follows a dollar sign begins with a path.
func isPathVariable(s string) bool {
	s = strings.TrimPrefix(s, "{")
	return strings.HasPrefix(s, "request_uri") || strings.HasPrefix(s, "uri") || strings.HasPrefix(s, "document_uri")
}

// passTarget takes the scheme away.
func passTarget(url, family string, stream bool) (rest string, port int, ok bool) {
	schemes := map[string]int{}
	switch {
	case stream:
	case family == "proxy_":
		schemes = map[string]int{"http://": 80, "https://": 443}
	case family == "grpc_":
		schemes = map[string]int{"grpc://": 80, "grpcs://": 443}
	case family == "uwsgi_":
		schemes = map[string]int{"uwsgi://": 80, "suwsgi://": 80}
	}
	for scheme, port := range schemes {
		if len(url) >= len(scheme) && equalName(url[:len(scheme)], scheme) {
			return url[len(scheme):], port, true
		}
	}
	if family == "proxy_" && !stream {
		return url, 0, strings.HasPrefix(url, "$")
	}
	return url, 80, true
}

// addReference enters what a location passes to among the upstreams.
func (p *parser) addReference(d *conflex.Directive, a conflex.Addr) *ParseError {
	for _, ref := range p.section.byName[lower(a.Host)] {
		if ref.block != nil && !a.NoPort && !a.IsUnix() {
			return p.refuse(d, a.Text, fmt.Sprintf(`upstream "%s" may not have port %d`, a.Host, a.Port),
				"leave the port out: the servers of the upstream have the ports")
		}
		if ref.block != nil || ref.port == a.Port {
			return nil
		}
	}
	p.section.add(&upstreamRef{host: a.Host, port: a.Port, noPort: a.NoPort, file: p.file(), line: d.Line})
	return nil
}

// initImplicit checks what is passed to without being a block: at the end
// nginx looks the name up.
func (p *parser) initImplicit(ref *upstreamRef) *ParseError {
	if ref.port == 0 || p.opts.Lookup == nil {
		return nil
	}
	a, reason := conflex.ParseAddr(ref.host, ref.port)
	if reason != "" || !a.IsName() {
		return nil
	}
	if ips, cause := p.opts.Lookup(a.Host); cause != nil || len(ips) == 0 {
		return &ParseError{File: ref.file, Line: ref.line, Word: ref.host, Cause: cause,
			Message: fmt.Sprintf(`host not found in upstream "%s"`, ref.host),
			Hint:    "no upstream block has this name, and it is no host"}
	}
	return nil
}

// retryOf fills in the retry policy of a block from the locations that pass to
// it.
func (p *parser) retryOf(b *block) {
	var chosen *pass
	var differ []string
	for _, ps := range p.section.passes[lower(b.Config.Name)] {
		if p.opts.Location != "" && ps.level.location != p.opts.Location {
			continue
		}
		p.located = true
		switch {
		case chosen == nil:
			chosen = ps
			b.Config.Retry = p.retryAt(b, ps)
		case ps.retry(b.Stream) != b.Config.Retry:
			differ = append(differ, ps.String())
		}
	}
	if differ != nil {
		p.warning(b, balancer.Warning{Code: CodeRetryDiffers, File: chosen.file, Line: chosen.line, Word: chosen.level.location,
			Message: fmt.Sprintf("several locations pass to the upstream with different retries or timeouts: those of %s are taken, not those of %s",
				chosen, andMore(differ)),
			Hint: "name one in ParseOptions.Location, or make an upstream of each"})
	}
}

// andMore names the first of several places and counts the others.
func andMore(places []string) string {
	if len(places) == 1 {
		return places[0]
	}
	return fmt.Sprintf("%s and %d more", places[0], len(places)-1)
}

// String names the place of the pass in a message.
func (ps *pass) String() string {
	where := lineOf(ps.file, ps.line)
	if ps.level.location == "" {
		return where
	}
	return "location " + ps.level.location + " (" + where + ")"
}

// retryAt makes the policy, and warns of what it cannot hold.
func (p *parser) retryAt(b *block, ps *pass) balancer.Retry {
	for i, s := range ps.level.policy(ps.family) {
		name := retryNames[i]
		if strings.HasSuffix(name, "timeout") && name != "next_upstream_timeout" && s.set && s.n == 0 {
			p.warning(b, balancer.Warning{Code: CodeTimeoutZero, File: ps.file, Line: ps.line, Word: ps.family + name,
				Message: ps.family + name + " is 0, which ends every try at once in nginx",
				Hint:    "the default, 60 s, holds here"})
		}
	}
	return ps.retry(b.Stream)
}

// retry is the policy of the level where the pass stands.
func (ps *pass) retry(stream bool) balancer.Retry {
	pol := ps.level.policy(ps.family)
	r := balancer.Retry{
		On:             pol[0].kinds,
		Tries:          int(min(pol[1].n, 1<<31-1)),
		Timeout:        millis(pol[2].n),
		ConnectTimeout: millis(pol[3].n),
		SendTimeout:    millis(pol[4].n),
		ReadTimeout:    millis(pol[5].n),
	}
	if r.On&balancer.KindOff != 0 {
		r.On = balancer.KindOff
	}
	if stream {
		r.SendTimeout, r.ReadTimeout = millis(pol[6].n), millis(pol[6].n)
	}
	return r
}

// checkLocation warns where a location was asked for and none is of use.
func (p *parser) checkLocation() {
	if p.opts.Location == "" || p.located {
		return
	}
	p.warning(nil, balancer.Warning{Code: CodeLocation, Word: p.opts.Location,
		Message: fmt.Sprintf("no location %q passes to an upstream", p.opts.Location),
		Hint:    "write the location's words as they stand in the text"})
}
