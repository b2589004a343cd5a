package nginxconf

import (
	"math"
	"net/http"
	"strings"

	"github.com/trunklb/trunk/balancer"
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
	to := &p.block.Config.Policy.SlowStart
	*to = max(*to, millis(min(n, math.MaxInt64/1000)*1000))
	p.ignore(d.Line, []string{word}, ClassHarmless, "read as Policy.SlowStart, which holds for all servers of the upstream; the longest time counts")
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
		case "hmac", "hmac_key":
			p.ignore(d.Line, []string{word}, ClassChoice, "sticky.Cookie.Secrets signs the cookie: set it in Config.Sticky")
		case "no_fallback":
			p.ignore(d.Line, []string{word}, ClassChoice, "a client whose peer is out goes to another one, as with nginx's sticky: nothing here refuses it instead")
		default:
			p.ignore(d.Line, []string{word}, ClassChoice, "sticky cookie has no such parameter: the sid is the server's route, else the MD5 of its address")
		}
	}
	return p.convertedCookie(d, c, "cookies of the older module are void unless its sid was the MD5 of the address")
}

// convertedCookie sets the cookie that a directive of another module was read as.
func (p *parser) convertedCookie(d *conflex.Directive, c sticky.Cookie, differs string) *ParseError {
	if c.Name == "" {
		return p.stickyError(d, c.Name, "empty cookie name", "")
	}
	p.ignore(d.Line, d.Words, ClassChoice, "read as sticky cookie "+c.Name+"; "+differs)
	p.block.sticky, p.block.Config.Sticky, p.block.chosen = c, c, true
	return nil
}

// sessionSticky reads session_sticky cookie=NAME domain=... path=... maxage=... as sticky
// cookie. Of its modes insert, the default, is the same.
func (p *parser) sessionSticky(d *conflex.Directive) *ParseError {
	c := sticky.Cookie{Name: "route"}
	for _, word := range d.Args() {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "cookie":
			c.Name = value
		case "maxage":
			if err := p.cookieParameter(d, &c, word, "expires", value); err != nil {
				return err
			}
		case "httponly", "secure", "domain", "path":
			if err := p.cookieParameter(d, &c, word, name, value); err != nil {
				return err
			}
		case "mode":
			if value != "insert" {
				p.ignore(d.Line, []string{word}, ClassChoice, "sticky cookie sets a cookie of its own, as mode=insert does; for one that the servers set use sticky learn")
			}
		default:
			p.ignore(d.Line, []string{word}, ClassChoice, "sticky cookie has no such parameter")
		}
	}
	return p.convertedCookie(d, c, "cookies of the other module are void")
}

// dynamicResolve reads dynamic_resolve as resolve in all server lines with names.
func (p *parser) dynamicResolve(d *conflex.Directive) *ParseError {
	p.block.dynamic = true
	p.ignore(d.Line, d.Words, ClassServers, "read as resolve in the server lines with names; a name keeps its last good addresses while it cannot be looked up")
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

// A jvmRoute is a jvm_route that was converted: where the session id is, and from which
// end it is read.
type jvmRoute struct {
	cookie, urlName string
	reverse         bool
}

// jvmRoute reads jvm_route $cookie_NAME[|urlname] [reverse] as sticky route. The route is
// the longest srun_id with which the session id begins, or, with reverse, ends, as
// Tomcat's do.
func (p *parser) jvmRoute(d *conflex.Directive, refusal *ParseError) *ParseError {
	if len(d.Args()) < 1 || !strings.HasPrefix(lower(d.Words[1]), "$cookie_") {
		return refusal
	}
	j := &jvmRoute{reverse: len(d.Words) > 2 && d.Words[2] == "reverse"}
	j.cookie, j.urlName, _ = strings.Cut(d.Words[1][len("$cookie_"):], "|")
	r := sticky.Route{Variables: []string{"$" + jvmRouteVariable}}
	p.block.sticky, p.block.Config.Sticky, p.block.chosen, p.block.jvm = r, r, true, j
	p.ignore(d.Line, d.Words, ClassChoice, "read as sticky route $jvm_route, a variable that the import makes of the session id and the srun_ids of the text")
	return nil
}

// variable makes the variable, for the servers of the text.
func (j *jvmRoute) variable(servers []balancer.Server) func(*http.Request) string {
	var routes []string
	for _, s := range servers {
		if s.Route != "" {
			routes = append(routes, s.Route)
		}
	}
	return func(r *http.Request) string {
		id, route := j.sessionID(r), ""
		for _, candidate := range routes {
			fits := strings.HasPrefix(id, candidate)
			if j.reverse {
				fits = strings.HasSuffix(id, candidate)
			}
			if fits && len(candidate) > len(route) {
				route = candidate
			}
		}
		return route
	}
}

// sessionID is the id in the cookie, or else in the URL.
func (j *jvmRoute) sessionID(r *http.Request) string {
	for _, c := range r.Cookies() {
		if equalName(c.Name, j.cookie) {
			return c.Value
		}
	}
	if j.urlName == "" || r.URL == nil {
		return ""
	}
	_, id, _ := strings.Cut(r.URL.Path, ";"+j.urlName+"=")
	id, _, _ = strings.Cut(id, ";")
	return id
}
