package nginxconf

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/internal/spell"
	"github.com/trunklb/trunk/sticky"
)

// sticky reads sticky cookie, route or learn.
func (p *parser) sticky(d *conflex.Directive) *ParseError {
	b := p.block
	if len(d.Args()) < 2 {
		if p.olderSticky(d) {
			return p.stickyOlder(d, p.wrongCount(d))
		}
		return p.wrongCount(d)
	}
	if b.sticky != nil {
		return p.duplicate(d)
	}
	var s sticky.Sticky
	var err *ParseError
	switch cstr(d.Words[1]) {
	case "cookie":
		s, err = p.stickyCookie(d)
	case "route":
		s, err = p.stickyRoute(d)
	case "learn":
		s, err = p.stickyLearn(d)
	default:
		err = p.unknownParameter(d, d.Words[1])
		if p.olderSticky(d) {
			return p.stickyOlder(d, err)
		}
	}
	if err != nil {
		return err
	}
	b.sticky, b.Config.Sticky, b.chosen = s, s, true
	return nil
}

func (p *parser) stickyCookie(d *conflex.Directive) (sticky.Sticky, *ParseError) {
	c := sticky.Cookie{Name: d.Words[2]}
	if c.Name == "" {
		return nil, p.stickyError(d, c.Name, "empty cookie name", "")
	}
	seen := map[string]bool{}
	for _, word := range d.Words[3:] {
		name, value, hasValue := strings.Cut(word, "=")
		if !hasValue {
			name = cstr(name)
		}
		if !isCookieParameter(name, hasValue) {
			return nil, p.unknownParameter(d, word)
		}
		if seen[name] {
			return nil, p.stickyError(d, word, `parameter "`+name+`" is duplicate`, "")
		}
		seen[name] = true
		if err := p.cookieParameter(d, &c, word, name, value); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func isCookieParameter(name string, hasValue bool) bool {
	switch name {
	case "expires", "domain", "path", "samesite":
		return hasValue
	case "httponly", "secure":
		return !hasValue
	}
	return false
}

func (p *parser) cookieParameter(d *conflex.Directive, c *sticky.Cookie, word, name, value string) *ParseError {
	switch name {
	case "httponly":
		c.HTTPOnly = true
	case "secure":
		c.Secure = true
	case "expires":
		var ok bool
		if c.Expires, ok = cookieExpires(value); !ok {
			return p.stickyError(d, word, `invalid "expires" parameter value`, "write a time such as 1h, or max")
		}
	case "samesite":
		c.SameSite = value
		if !strings.Contains(value, "$") {
			switch lower(value) {
			case "strict", "lax", "none":
			default:
				return p.stickyError(d, word, `invalid "samesite" parameter value`, "write strict, lax, none, or a variable")
			}
		}
		return p.use(d, value)
	case "domain", "path":
		if value == "" {
			return p.stickyError(d, word, `no value for "`+name+`"`, "leave it out, or write one")
		}
		if name == "path" {
			c.Path = value
			return nil
		}
		c.Domain = value
		return p.use(d, value)
	}
	return nil
}

// maxExpires is where nginx's cookie expires at the end of its time.
const maxExpires = 2145916555

func cookieExpires(value string) (time.Duration, bool) {
	if value == "max" {
		return sticky.MaxExpires, true
	}
	n, ok := conflex.Seconds(value)
	switch {
	case !ok:
		return 0, false
	case n == 0:
		return sticky.ExpiresAtOnce, true
	case n >= maxExpires:
		return sticky.MaxExpires, true
	}
	return time.Duration(n) * time.Second, true
}

func (p *parser) stickyRoute(d *conflex.Directive) (sticky.Sticky, *ParseError) {
	var r sticky.Route
	for _, word := range d.Words[2:] {
		if !strings.HasPrefix(word, "$") {
			return nil, p.refuse(d, word, `invalid variable name "`+word+`"`, "a variable begins with a dollar sign, such as $cookie_route")
		}
		if err := p.useOne(d, word); err != nil {
			return nil, err
		}
		r.Variables = append(r.Variables, lower(word))
	}
	return r, nil
}

// CodeOneVariable: nginx reads a word of sticky route or learn as the name of
// one variable, whatever is in it.
const CodeOneVariable balancer.Code = "one-variable"

// useOne notes a word that is one variable, braces and all.
func (p *parser) useOne(d *conflex.Directive, word string) *ParseError {
	name := lower(word[1:])
	if name == "" {
		return p.refuse(d, word, `invalid variable name "$"`, "write the variable's name behind the dollar sign")
	}
	p.uses(d, name)
	if names, err := conflex.Variables(word); err != nil || len(names) != 1 || names[0] != name {
		p.warn(d, CodeOneVariable, word, fmt.Sprintf("nginx reads %q as the name of a single variable", word[1:]),
			"sticky takes variables alone, one per word, without braces or other text")
	}
	return nil
}

func (p *parser) stickyLearn(d *conflex.Directive) (sticky.Sticky, *ParseError) {
	l := sticky.Learn{}
	for _, word := range d.Words[2:] {
		if err := p.learnParameter(d, &l, word); err != nil {
			return nil, err
		}
	}
	switch {
	case len(l.Lookup) == 0:
		return nil, p.stickyError(d, "lookup", `"lookup" parameter is not specified`, "write lookup=$cookie_NAME")
	case len(l.Create) == 0:
		return nil, p.stickyError(d, "create", `"create" parameter is not specified`, "write create=$upstream_cookie_NAME")
	case l.Zone == "":
		return nil, p.stickyError(d, "zone", `"zone" parameter is not specified`, "write zone=NAME:1m")
	}
	return l, nil
}

func (p *parser) learnParameter(d *conflex.Directive, l *sticky.Learn, word string) *ParseError {
	name, value, hasValue := strings.Cut(word, "=")
	switch {
	case cstr(word) == "header":
		l.Header = true
		return nil
	case hasValue && name == "create":
		return p.learnVariable(d, &l.Create, word, name, value)
	case hasValue && name == "lookup":
		return p.learnVariable(d, &l.Lookup, word, name, value)
	case hasValue && name == "zone":
		return p.learnZone(d, l, word, value)
	case hasValue && name == "timeout":
		return p.learnTimeout(d, l, word, value)
	}
	err := p.unknownParameter(d, word)
	switch name {
	case "sync":
		return p.foreign(d, []string{word}, foreignThing{ClassHarmless,
			"sessions shared between machines: give a sticky.Learn.Table of your own"}, err)
	case "norefresh", "remote_addr", "remote_result":
		return p.foreign(d, []string{word}, foreignThing{ClassChoice, "sticky learn has no such parameter here"}, err)
	}
	return err
}

func (p *parser) learnVariable(d *conflex.Directive, to *[]string, word, name, value string) *ParseError {
	if !strings.HasPrefix(value, "$") {
		return p.stickyError(d, word, `missing variable in the "`+name+`" parameter`, "write "+name+"=$...")
	}
	*to = append(*to, lower(value))
	return p.useOne(d, value)
}

func (p *parser) learnZone(d *conflex.Directive, l *sticky.Learn, word, value string) *ParseError {
	name, text, hasSize := strings.Cut(value, ":")
	size, ok := conflex.Size(text)
	switch {
	case l.Zone != "":
		return p.stickyError(d, word, "duplicate zone", "")
	case !hasSize:
		return p.stickyError(d, word, "zone size is not specified", "write zone=NAME:1m")
	case name == "":
		return p.stickyError(d, word, "zone name is not specified", "write zone=NAME:1m")
	case !ok:
		return p.stickyError(d, word, "invalid zone size", "write a number of bytes, with k or m")
	case size < spell.MinZone:
		return p.stickyError(d, word, "zone is too small", "it must have at least 32k")
	}
	z, err := p.addZone(d, name, size, zoneSticky)
	if err != nil {
		return err
	}
	if z.user != "" {
		return p.refuse(d, word, fmt.Sprintf(`sticky zone "%s" is already used in upstream "%s"`, name, z.user),
			"every sticky learn needs a zone of its own")
	}
	z.user, z.used = p.block.Config.Name, true
	l.Zone, l.ZoneSize = name, size
	return nil
}

func (p *parser) learnTimeout(d *conflex.Directive, l *sticky.Learn, word, value string) *ParseError {
	n, ok := conflex.Millis(value)
	switch {
	case l.Timeout != 0:
		return p.stickyError(d, word, "duplicate timeout", "")
	case !ok || n == 0:
		return p.stickyError(d, word, "invalid timeout", "write a time such as 10m")
	}
	l.Timeout = millis(n)
	return nil
}

// millis turns milliseconds into a duration, the longest one if they are more.
func millis(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(n, most)) * time.Millisecond
}

func (p *parser) stickyError(d *conflex.Directive, word, message, hint string) *ParseError {
	return p.refuse(d, word, `"sticky" directive `+message, hint)
}

func (p *parser) unknownParameter(d *conflex.Directive, word string) *ParseError {
	return p.refuse(d, word, `unknown parameter "`+word+`"`, hintSticky(word))
}
