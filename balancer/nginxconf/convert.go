package nginxconf

import (
	"math"
	"net/http"
	"strings"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/sticky"
)

// What ParseOptions.Convert reads as something of nginx's or trunk's own.

// slowStart reads slow_start=TIME as the remedy, which is the upstream's; of
// several times the longest counts.
func (p *parser) slowStart(d *conflex.Directive, word, value string, refusal *ParseError) *ParseError {
	n, ok := conflex.Seconds(value)
	if !ok {
		return refusal
	}
	to := &p.block.Config.Policy.Return.SlowStart
	*to = max(*to, millis(min(n, math.MaxInt64/1000)*1000))
	p.ignore(d.Line, []string{word}, ClassHarmless, "read as Policy.Return.SlowStart, which holds for all servers of the upstream; the longest time counts")
	return nil
}

// olderSticky reports whether a sticky directive is that of the older module:
// sticky; or sticky name=srv hash=md5 expires=1h ...
func (p *parser) olderSticky(d *conflex.Directive) bool {
	for _, word := range d.Args() {
		name, _, hasValue := strings.Cut(word, "=")
		switch name {
		case "name", "domain", "path", "expires", "hash", "hmac", "hmac_key", "text", "cookie", "delimiter", "transfer":
			if !hasValue {
				return false
			}
		case "no_fallback", "secure", "httponly":
			if hasValue {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// stickyOlder reads the older module's directive, if the caller wants that.
func (p *parser) stickyOlder(d *conflex.Directive, refusal *ParseError) *ParseError {
	const instead = "this is the older sticky module: write sticky cookie NAME with the same domain, path and expires; ParseOptions.Convert does it"
	if !p.opts.Convert {
		return p.foreign(d, d.Words, foreignThing{ClassChoice, instead}, refusal)
	}
	c := sticky.Cookie{Name: "route"}
	for _, word := range d.Args() {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "name":
			c.Name = value
		case "httponly", "secure", "domain", "path", "expires":
			if err := p.cookieParameter(d, &c, word, name, value); err != nil {
				return err
			}
		default:
			p.ignore(d.Line, []string{word}, ClassChoice, "sticky cookie has no such parameter: the sid is the server's route, else the MD5 of its address")
		}
	}
	if c.Name == "" {
		return p.stickyError(d, c.Name, "empty cookie name", "")
	}
	p.ignore(d.Line, d.Words, ClassChoice, "read as sticky cookie "+c.Name+"; cookies of the older module are void unless its sid was the MD5 of the address")
	p.block.sticky, p.block.Config.Sticky, p.block.chosen = c, c, true
	return nil
}

func (p *parser) consistentHash(d *conflex.Directive, t foreignThing) *ParseError {
	if err := p.use(d, d.Words[1]); err != nil {
		return err
	}
	p.choose(d, hash.NewConsistent(d.Words[1]))
	p.ignore(d.Line, d.Words, t.class, "read as hash "+d.Words[1]+" consistent; keys land on other servers than before")
	return nil
}

// jvmRouteVariable is the variable that holds a session id's route.
const jvmRouteVariable = "jvm_route"

// jvmRoute reads jvm_route $cookie_NAME[|urlname] [reverse]: the route is what
// stands behind the last dot of the session id, or before the first one.
func (p *parser) jvmRoute(d *conflex.Directive, refusal *ParseError) *ParseError {
	if len(d.Args()) < 1 || !strings.HasPrefix(d.Words[1], "$cookie_") {
		return refusal
	}
	cookie, urlName, _ := strings.Cut(strings.TrimPrefix(d.Words[1], "$cookie_"), "|")
	reverse := len(d.Words) > 2 && d.Words[2] == "reverse"
	r := sticky.Route{Variables: []string{"$" + jvmRouteVariable}}
	p.block.sticky, p.block.Config.Sticky, p.block.chosen = r, r, true
	p.block.variables = map[string]func(*http.Request) string{
		jvmRouteVariable: func(r *http.Request) string { return jvmRouteOf(sessionID(r, cookie, urlName), reverse) },
	}
	p.ignore(d.Line, d.Words, ClassChoice, "read as sticky route $jvm_route, a variable that the import makes: the route in the session id")
	return nil
}

func sessionID(r *http.Request, cookie, urlName string) string {
	if c, err := r.Cookie(cookie); err == nil {
		return c.Value
	}
	if urlName == "" || r.URL == nil {
		return ""
	}
	_, id, _ := strings.Cut(r.URL.Path, ";"+urlName+"=")
	id, _, _ = strings.Cut(id, ";")
	return id
}

func jvmRouteOf(id string, reverse bool) string {
	dot := strings.LastIndexByte(id, '.')
	if reverse {
		dot = strings.IndexByte(id, '.')
	}
	switch {
	case dot < 0:
		return ""
	case reverse:
		return id[:dot]
	}
	return id[dot+1:]
}
