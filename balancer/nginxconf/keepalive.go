package nginxconf

import (
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
)

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

// second reports whether the block, or the level, has this directive already.
func (p *parser) second(d *conflex.Directive) bool {
	if p.block == nil {
		return !p.at.level.set(d.Name(), setting{})
	}
	seen := p.block.seen[d.Name()]
	p.block.seen[d.Name()] = true
	return seen
}

// invalid is the error of a directive whose only argument is wrong.
func (p *parser) invalid(d *conflex.Directive, what, hint string) *ParseError {
	return p.refuse(d, d.Words[1], `"`+d.Name()+`" directive `+what, hint)
}
