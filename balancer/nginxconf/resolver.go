package nginxconf

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trunklb/trunk/internal/conflex"
)

// A resolver is what a resolver directive says.
type resolver struct {
	words   []string
	valid   time.Duration // 0: nothing is said
	network string        // for Config.ResolveNetwork
	file    string
	line    int
}

// resolver reads a resolver, an upstream's own or the section's.
func (p *parser) resolver(d *conflex.Directive) *ParseError {
	to := &p.section.resolver
	if p.block != nil {
		to = &p.block.resolver
	}
	if p.second(d) {
		return p.duplicate(d)
	}
	r := &resolver{words: d.Args(), file: p.file(), line: d.Line}
	servers, off := 0, map[string]bool{}
	for _, word := range d.Args() {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "valid="):
			n, ok := conflex.Seconds(value)
			if !ok {
				return p.refuse(d, word, "invalid parameter: "+word, "write whole seconds, such as valid=30s")
			}
			// Of 0 nginx makes a second.
			r.valid = time.Duration(min(max(n, 1), math.MaxInt64/int64(time.Second))) * time.Second
		case strings.HasPrefix(word, "ipv4="), strings.HasPrefix(word, "ipv6="):
			if value != "on" && value != "off" {
				return p.refuse(d, word, "invalid parameter: "+word, "write on or off")
			}
			off[name] = value == "off"
		default:
			if err := p.resolverAddr(d, word); err != nil {
				return err
			}
			servers++
		}
	}
	switch {
	case off["ipv4"] && off["ipv6"]:
		return p.refuse(d, "ipv6=off", `"ipv4" and "ipv6" cannot both be "off"`, "")
	case servers == 0:
		return p.refuse(d, d.Name(), "no name servers defined", "write the address of a name server")
	case off["ipv6"]:
		r.network = "ip4"
	case off["ipv4"]:
		r.network = "ip6"
	}
	*to = r
	return nil
}

func (p *parser) resolverAddr(d *conflex.Directive, word string) *ParseError {
	a, reason := conflex.ParseAddr(word, 53)
	if reason == "" && a.IsName() && p.opts.Lookup != nil {
		// nginx asks the system for the address of its name server.
		if ips, err := p.opts.Lookup(a.Host); err != nil || len(ips) == 0 {
			reason = "host not found"
		}
	}
	if reason == "" {
		return nil
	}
	return p.refuse(d, word, fmt.Sprintf(`%s in resolver "%s"`, reason, word), "write the address of a name server")
}

// resolverTimeout reads a resolver_timeout, an upstream's own or the section's.
func (p *parser) resolverTimeout(d *conflex.Directive) *ParseError {
	to := &p.section.resolverTimeout
	if p.block != nil {
		to = &p.block.Config.ResolveTimeout
	}
	n, ok := conflex.Millis(d.Words[1])
	switch {
	case p.second(d):
		return p.duplicate(d)
	case !ok:
		return p.invalid(d, "invalid value", "write a time such as 5s")
	case n == 0:
		p.warn(d, CodeTimeoutZero, d.Name(), "resolver_timeout is 0, which is no limit in nginx", "the default, 30 s, holds here")
	}
	*to = millis(n)
	return nil
}

// inherit gives a block the section's resolver where it has none, as nginx does for one
// with a zone, and says what becomes of it.
func (p *parser) inherit(b *block) {
	if b.resolver == nil && b.zone != nil {
		b.resolver = p.section.resolver
	}
	if b.resolver == nil {
		return
	}
	r := b.resolver
	b.Resolver, b.Config.ResolveInterval, b.Config.ResolveNetwork = r.words, r.valid, r.network
	if b.Config.ResolveTimeout == 0 {
		b.Config.ResolveTimeout = p.section.resolverTimeout
	}
	i := Ignored{Upstream: b.Config.Name, File: r.file, Line: r.line, Words: append([]string{"resolver"}, r.words...), Class: ClassNginx,
		Instead: "its addresses are not asked: Config.Resolver is, or the system's resolver; valid is read as Config.ResolveInterval, ipv4=off and ipv6=off as Config.ResolveNetwork"}
	b.Ignored, p.out.Ignored = append(b.Ignored, i), append(p.out.Ignored, i)
}
