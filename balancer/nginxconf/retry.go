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
	// CodeRetryUnread: a location passes to a name in a variable, so its
	// proxy_next_upstream and timeouts belong to no upstream of the text.
	CodeRetryUnread balancer.Code = "retry-unread"
	// CodeTimeoutZero: a timeout of 0 ends every try at once in nginx; here the
	// default holds.
	CodeTimeoutZero balancer.Code = "timeout-zero"
	// CodeDuplicateValue is nginx's warning: a kind of proxy_next_upstream is named twice.
	CodeDuplicateValue balancer.Code = "duplicate-value"
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
	set                bool
	kinds              balancer.Kind
	off, nonIdempotent bool
	n                  int64 // a number, or milliseconds
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
		if s, ok := l.settings[family+"_"+name]; ok {
			pol[i] = s
		}
	}
	if l.policies == nil {
		l.policies = map[string]policy{}
	}
	l.policies[family] = pol
	return pol
}

// set notes a setting. It reports false if the level has it already.
func (l *level) set(name string, s setting) bool {
	if l.settings == nil {
		l.settings = map[string]setting{}
	}
	_, twice := l.settings[name]
	s.set = true
	l.settings[name] = s
	return !twice
}

// retryNumber reads a setting that is one number or time.
func retryNumber(read func(string) (int64, bool), invalid string) action {
	return func(p *parser, d *conflex.Directive) *ParseError {
		n, ok := read(d.Words[1])
		switch {
		case p.at.level.settings[d.Name()].set:
			return p.duplicate(d)
		case !ok:
			return p.invalid(d, invalid, "")
		}
		p.at.level.set(d.Name(), setting{n: n})
		return nil
	}
}

// nextUpstreamKinds are the kinds that each family knows.
var nextUpstreamKinds = map[string][]string{
	"proxy": {"error", "timeout", "invalid_header", "non_idempotent", "http_500", "http_502", "http_503", "http_504",
		"http_403", "http_404", "http_429", "updating", "off"},
	"fastcgi": {"error", "timeout", "invalid_header", "non_idempotent", "http_500", "http_503",
		"http_403", "http_404", "http_429", "updating", "off"},
	"uwsgi": {"error", "timeout", "invalid_header", "non_idempotent", "http_500", "http_503",
		"http_403", "http_404", "http_429", "updating", "off"},
	"scgi": {"error", "timeout", "invalid_header", "non_idempotent", "http_500", "http_503",
		"http_403", "http_404", "http_429", "updating", "off"},
	"grpc": {"error", "timeout", "invalid_header", "non_idempotent", "http_500", "http_502", "http_503", "http_504",
		"http_403", "http_404", "http_429", "off"},
	"memcached": {"error", "timeout", "invalid_response", "not_found", "off"},
}

// updating is a kind of caches: there is no old answer to give meanwhile.
const updating = "updating"

// kindOf is the kind of a name; 0 for updating, non_idempotent and off, which are no reasons.
func kindOf(name string) balancer.Kind {
	switch name {
	case "invalid_response":
		return balancer.KindInvalidHeader
	case "not_found":
		return balancer.KindHTTP404
	}
	for k := balancer.KindError; k <= balancer.KindHTTP404; k <<= 1 {
		if name == k.String() {
			return k
		}
	}
	return 0
}

// nextUpstream reads the kinds; two lines on one level add up, as in nginx.
func (p *parser) nextUpstream(d *conflex.Directive) *ParseError {
	s := p.at.level.settings[d.Name()]
	for _, word := range d.Args() {
		name, ok := nextUpstreamKind(familyOf(d), word)
		if !ok {
			return p.refuse(d, word, `invalid value "`+word+`"`, "write "+strings.Join(nextUpstreamKinds[familyOf(d)], ", "))
		}
		kind := kindOf(name)
		switch {
		case name == updating:
			p.ignore(d.Line, []string{d.Name(), word}, ClassNginx, "it is for caches: without one there is no older answer to give")
		case s.kinds&kind != 0, name == "off" && s.off, name == "non_idempotent" && s.nonIdempotent:
			p.warn(d, CodeDuplicateValue, word, `duplicate value "`+word+`"`, "once is enough: leave one of them out")
		}
		s.kinds |= kind
		s.off = s.off || name == "off"
		s.nonIdempotent = s.nonIdempotent || name == "non_idempotent"
	}
	p.at.level.set(d.Name(), s)
	return nil
}

// nextUpstreamKind finds a kind of a family, whose case nginx does not mind.
func nextUpstreamKind(family, word string) (name string, ok bool) {
	for _, name := range nextUpstreamKinds[family] {
		if equalName(name, word) {
			return name, true
		}
	}
	return "", false
}

// nextUpstreamStream reads on or off.
func (p *parser) nextUpstreamStream(d *conflex.Directive) *ParseError {
	s := setting{off: true}
	switch word := d.Words[1]; {
	case p.at.level.settings[d.Name()].set:
		return p.duplicate(d)
	case equalName(word, "on"):
		s = setting{kinds: balancer.KindError | balancer.KindTimeout}
	case !equalName(word, "off"):
		return p.refuse(d, word, `invalid value "`+word+`" in "proxy_next_upstream" directive, it must be "on" or "off"`, "")
	}
	p.at.level.set(d.Name(), s)
	return nil
}

// familyOf is the family of a directive: proxy of proxy_pass.
func familyOf(d *conflex.Directive) string {
	family, _, _ := strings.Cut(d.Name(), "_")
	return family
}

// A pass is a directive that passes requests to an upstream.
type pass struct {
	words []string // such as proxy_pass http://app
	level *level
	file  string
	line  int
}

func (ps *pass) family() string {
	family, _, _ := strings.Cut(ps.words[0], "_")
	return family
}

// pass notes where requests go. A name without variables is an upstream to nginx,
// whether or not a block has the name. A text with variables nginx judges for each
// request: it names an upstream here if its beginning does.
func (p *parser) pass(d *conflex.Directive) *ParseError {
	if !p.at.level.set(d.Name(), setting{}) {
		return p.duplicate(d)
	}
	ps := &pass{words: d.Words, level: p.at.level, file: p.file(), line: d.Line}
	fixed, rest, dynamic := strings.Cut(d.Words[1], "$")
	target, port, ok := passTarget(fixed, familyOf(d), p.section.stream)
	if dynamic && (!ok || !strings.Contains(target, "/") && !isPathVariable(rest)) {
		p.section.dynamic = append(p.section.dynamic, ps)
		return nil
	}
	if !ok {
		return p.refuse(d, d.Words[1], "invalid URL prefix", "write http:// or https:// in front")
	}
	if !strings.HasPrefix(lower(target), "unix:") {
		if i := strings.IndexAny(target, "/?"); i >= 0 {
			target = target[:i]
		}
	}
	a, reason := conflex.ParseAddr(target, port)
	switch {
	case dynamic:
	case reason != "":
		return p.refuse(d, target, fmt.Sprintf(`%s in upstream "%s"`, reason, target), hintAddr(d, target))
	default:
		if err := p.addReference(d, a); err != nil {
			return err
		}
	}
	key := lower(a.Host)
	p.section.passes[key] = append(p.section.passes[key], ps)
	return nil
}

// isPathVariable reports whether what follows a dollar sign begins with a path.
func isPathVariable(s string) bool {
	s = strings.TrimPrefix(s, "{")
	return strings.HasPrefix(s, "request_uri") || strings.HasPrefix(s, "uri") || strings.HasPrefix(s, "document_uri")
}

// schemes are what the targets of a family may begin with, and the ports that they
// mean. Only proxy needs one.
var schemes = map[string]map[string]int{
	"proxy": {"http://": 80, "https://": 443},
	"grpc":  {"grpc://": 80, "grpcs://": 443},
	"uwsgi": {"uwsgi://": 80, "suwsgi://": 80},
}

// passTarget takes the scheme away.
func passTarget(url, family string, stream bool) (rest string, port int, ok bool) {
	if stream {
		return url, 80, true
	}
	for scheme, port := range schemes[family] {
		if len(url) >= len(scheme) && equalName(url[:len(scheme)], scheme) {
			return url[len(scheme):], port, true
		}
	}
	return url, 80, family != "proxy"
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
// it, or, where the caller has named the location, from that one.
func (p *parser) retryOf(b *block) {
	candidates := p.section.passes[lower(b.Config.Name)]
	if p.opts.Location != "" {
		candidates = p.wanted(candidates)
		if len(candidates) == 0 {
			candidates = p.wanted(p.section.dynamic)
		}
	}
	if len(candidates) == 0 {
		return
	}
	p.located = true
	chosen := candidates[0]
	b.Config.Retry = p.retryAt(b, chosen)
	if b.Pass = chosen.words; strings.HasPrefix(chosen.words[1], "$") {
		b.Pass = nil // does not name the block
	}
	var differ []string
	for _, ps := range candidates[1:] {
		if ps.retry(b.Stream) != b.Config.Retry {
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

// wanted are the passes in the location that the caller has named.
func (p *parser) wanted(all []*pass) (out []*pass) {
	for _, ps := range all {
		if ps.level.location == p.opts.Location {
			out = append(out, ps)
		}
	}
	return out
}

// unreadRetries warns of locations that pass to a variable, and say how to retry.
func (p *parser) unreadRetries() {
	for _, ps := range p.section.dynamic {
		if ps.retry(p.section.stream) == (balancer.Retry{}) || p.opts.Location != "" && ps.level.location == p.opts.Location {
			continue
		}
		p.warning(nil, balancer.Warning{Code: CodeRetryUnread, File: ps.file, Line: ps.line, Word: ps.words[1],
			Message: fmt.Sprintf("%s passes to a name in a variable, so its retries and timeouts belong to no upstream here", ps),
			Hint:    "name the location in ParseOptions.Location, or set Config.Retry"})
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
	for i, s := range ps.level.policy(ps.family()) {
		name := ps.family() + "_" + retryNames[i]
		if strings.HasSuffix(name, "timeout") && retryNames[i] != "next_upstream_timeout" && s.set && s.n == 0 {
			p.warning(b, balancer.Warning{Code: CodeTimeoutZero, File: ps.file, Line: ps.line, Word: name,
				Message: name + " is 0, which ends every try at once in nginx",
				Hint:    "the default, 60 s, holds here"})
		}
	}
	return ps.retry(b.Stream)
}

// retry is the policy of the level where the pass is.
func (ps *pass) retry(stream bool) balancer.Retry {
	pol := ps.level.policy(ps.family())
	on := pol[0]
	r := balancer.Retry{
		On:             on.kinds,
		NonIdempotent:  on.nonIdempotent,
		Tries:          int(min(pol[1].n, 1<<31-1)),
		Timeout:        millis(pol[2].n),
		ConnectTimeout: millis(pol[3].n),
		SendTimeout:    millis(pol[4].n),
		ReadTimeout:    millis(pol[5].n),
	}
	if on.off || on.set && on.kinds == 0 { // non_idempotent alone passes nothing on either
		r.Off, r.On, r.NonIdempotent = true, 0, false
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
		Hint:    "write the location's words as they are in the text"})
}
