package nginxconf

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/internal/spell"
)

// A zone is a shared memory zone.
type zone struct {
	name string
	size int64 // 0: no directive has said it yet
	kind zoneKind
	user string // the upstream whose sticky learn has it
	used bool
}

type zoneKind uint8

const (
	zoneHTTP zoneKind = iota
	zoneStream
	zoneSticky
)

// addZone enters a zone, or finds it.
func (p *parser) addZone(d *conflex.Directive, name string, size int64, kind zoneKind) (*zone, *ParseError) {
	z := p.zones[name]
	if z == nil {
		z = &zone{name: name, size: size, kind: kind}
		p.zones[name], p.inOrder = z, append(p.inOrder, z)
		return z, nil
	}
	if z.kind != kind {
		return nil, p.refuse(d, name, fmt.Sprintf(`the shared memory zone "%s" is already declared for a different use`, name),
			"give the two zones two names")
	}
	if z.size == 0 {
		z.size = size
	}
	if size != 0 && size != z.size {
		return nil, p.refuse(d, name, fmt.Sprintf(`the size %d of shared memory zone "%s" conflicts with already declared size %d`,
			size, name, z.size), "")
	}
	return z, nil
}

// checkZones looks for zones that have no size. nginx names no line.
func (p *parser) checkZones() *ParseError {
	for _, z := range p.inOrder {
		if z.size == 0 {
			return &ParseError{Word: z.name, Message: `zero size shared memory zone "` + z.name + `"`,
				Hint: "write the size in one of the zone lines, such as zone " + z.name + " 256k;"}
		}
	}
	return nil
}

// zone reads an upstream's zone. Of two the last counts.
func (p *parser) zone(d *conflex.Directive) *ParseError {
	name, size := d.Words[1], int64(0)
	if name == "" {
		return p.refuse(d, name, `invalid zone name ""`, "")
	}
	if len(d.Words) == 3 {
		var ok bool
		if size, ok = conflex.Size(d.Words[2]); !ok {
			return p.refuse(d, d.Words[2], `invalid zone size "`+d.Words[2]+`"`, "write a number of bytes, with k or m")
		}
		if size < spell.MinZone {
			return p.refuse(d, d.Words[2], `zone "`+name+`" is too small`, "it must have at least 32k")
		}
	}
	kind := zoneHTTP
	if p.section.stream {
		kind = zoneStream
	}
	z, err := p.addZone(d, name, size, kind)
	if err != nil {
		return err
	}
	p.block.zone = z
	p.block.Zone = Zone{Name: z.name, Size: z.size}
	p.ignore(d.Line, d.Words, ClassNginx,
		"in one process the state is always shared; between processes it is not: each balances for itself, as nginx's workers do without a zone")
	return nil
}

var defaultKeepalive = Keepalive{Max: 32, Local: true, Requests: 1000, Time: time.Hour, Timeout: time.Minute}

func (p *parser) keepalive(d *conflex.Directive) *ParseError {
	if p.second(d) {
		return p.duplicate(d)
	}
	n, ok := number(d.Words[1])
	if !ok {
		return p.refuse(d, d.Words[1], `invalid value "`+d.Words[1]+`" in "keepalive" directive`, "write a number of connections, or 0 for none")
	}
	k := &p.block.Keepalive
	k.Max, k.Local = n, false
	if len(d.Words) == 3 {
		if cstr(d.Words[2]) != "local" {
			return p.invalidParameter(d, d.Words[2])
		}
		k.Local = true
	}
	if p.block.Config.Keepalive = n; n == 0 {
		p.block.Config.Keepalive = balancer.NoKeepalive
	}
	return nil
}

func (p *parser) keepaliveRequests(d *conflex.Directive) *ParseError {
	if p.second(d) {
		return p.duplicate(d)
	}
	n, ok := number(d.Words[1])
	if !ok {
		return p.invalid(d, "invalid number", "write a number of requests")
	}
	p.block.Keepalive.Requests = n
	p.ignore(d.Line, d.Words, ClassNginx, "net/http does not count the requests of a connection: limit them at the servers")
	return nil
}

func (p *parser) keepaliveTime(d *conflex.Directive) *ParseError {
	if err := p.keepaliveDuration(d, &p.block.Keepalive.Time); err != nil {
		return err
	}
	p.ignore(d.Line, d.Words, ClassNginx, "net/http does not limit the age of a connection, only how long it is idle (keepalive_timeout): limit it at the servers")
	return nil
}

func (p *parser) keepaliveTimeout(d *conflex.Directive) *ParseError {
	k := &p.block.Keepalive
	if err := p.keepaliveDuration(d, &k.Timeout); err != nil {
		return err
	}
	if p.block.Config.KeepaliveTimeout = k.Timeout; k.Timeout == 0 {
		p.block.Config.KeepaliveTimeout = balancer.NoKeepalive // nginx closes the connection at once
	}
	return nil
}

func (p *parser) keepaliveDuration(d *conflex.Directive, to *time.Duration) *ParseError {
	if p.second(d) {
		return p.duplicate(d)
	}
	n, ok := conflex.Millis(d.Words[1])
	if !ok {
		return p.invalid(d, "invalid value", "write a time such as 60s")
	}
	*to = millis(n)
	return nil
}

// resolver reads an upstream's resolver.
func (p *parser) resolver(d *conflex.Directive) *ParseError {
	if p.second(d) {
		return p.duplicate(d)
	}
	var servers int
	off := map[string]bool{}
	for _, word := range d.Args() {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "valid="):
			n, ok := conflex.Seconds(value)
			if !ok {
				return p.refuse(d, word, "invalid parameter: "+word, "write whole seconds, such as valid=30s")
			}
			p.block.Config.ResolveInterval = time.Duration(min(n, math.MaxInt64/int64(time.Second))) * time.Second
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
	}
	p.ignore(d.Line, d.Words, ClassNginx, "names are asked of Config.Resolver, or of the system's resolver; valid is read as Config.ResolveInterval")
	return nil
}

func (p *parser) resolverAddr(d *conflex.Directive, word string) *ParseError {
	a, reason := conflex.ParseAddr(word, 53)
	if reason == "" && a.IsName() {
		// nginx asks the system for the address of its name server.
		switch {
		case p.opts.Lookup == nil:
			return nil
		default:
			if ips, err := p.opts.Lookup(a.Host); err != nil || len(ips) == 0 {
				reason = "host not found"
			}
		}
	}
	if reason == "" {
		return nil
	}
	return p.refuse(d, word, fmt.Sprintf(`%s in resolver "%s"`, reason, word), "write the address of a name server")
}

func (p *parser) resolverTimeout(d *conflex.Directive) *ParseError {
	if p.second(d) {
		return p.duplicate(d)
	}
	n, ok := conflex.Millis(d.Words[1])
	if !ok {
		return p.invalid(d, "invalid value", "write a time such as 5s")
	}
	p.block.Config.ResolveTimeout = millis(n)
	return nil
}

// second reports whether the block has had this directive before.
func (p *parser) second(d *conflex.Directive) bool {
	seen := p.block.seen[d.Name()]
	p.block.seen[d.Name()] = true
	return seen
}

// invalid is the error of a directive whose only argument is wrong.
func (p *parser) invalid(d *conflex.Directive, what, hint string) *ParseError {
	return p.refuse(d, d.Words[1], `"`+d.Name()+`" directive `+what, hint)
}
