package nginxconf

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/peer"
)

// CodeFailTimeout: a fail_timeout is longer than a time.Duration can be, and
// was set to the longest one, 292 years.
const CodeFailTimeout balancer.Code = "fail-timeout-saturated"

// server reads a server line.
func (p *parser) server(d *conflex.Directive) *ParseError {
	s := balancer.Server{Name: d.Words[1]}
	for _, word := range d.Words[2:] {
		if err := p.serverParameter(d, &s, word); err != nil {
			return err
		}
	}
	n, err := p.serverAddr(d, &s)
	if err != nil {
		return err
	}
	if err := p.addWeight(d, &s, n); err != nil {
		return err
	}
	p.block.Config.Servers = append(p.block.Config.Servers, s)
	return nil
}

// serverParameter reads one parameter; of several alike the last counts.
func (p *parser) serverParameter(d *conflex.Directive, s *balancer.Server, word string) *ParseError {
	name, value, hasValue := strings.Cut(word, "=")
	if !hasValue {
		return p.serverFlag(d, s, word)
	}
	ok := false
	switch name {
	case "weight":
		s.Weight, ok = number(value)
		ok = ok && s.Weight > 0
	case "max_conns":
		s.MaxConns, ok = number(value)
	case "max_fails":
		if s.MaxFails, ok = number(value); ok && s.MaxFails == 0 {
			s.MaxFails = balancer.NoMaxFails
		}
	case "fail_timeout":
		s.FailTimeout, ok = p.failTimeout(d, value)
	case "service":
		if s.Service, ok = value, value != ""; !ok {
			return p.refuse(d, word, "service is empty", "write the service's name, such as service=http")
		}
	case "route":
		if p.section.stream {
			break
		}
		switch n := len(value); {
		case n == 0:
			return p.refuse(d, word, "route is empty", fmt.Sprintf("write 1 to %d bytes", peer.MaxRoute))
		case n > peer.MaxRoute:
			return p.refuse(d, word, fmt.Sprintf("route is longer than %d", peer.MaxRoute), "")
		}
		s.Route, ok = value, true
	}
	if !ok {
		return p.foreignParameter(d, s, word)
	}
	return nil
}

// serverFlag reads a parameter without a value. Of down and drain the last
// counts: nginx keeps both in one field.
func (p *parser) serverFlag(d *conflex.Directive, s *balancer.Server, word string) *ParseError {
	switch flag := cstr(word); {
	case flag == "backup":
		if p.block.noBackup {
			return p.refuse(d, word, `balancing method does not support parameter "`+word+`"`,
				"the method's line is above; nginx takes backups whose lines are above hash, ip_hash and random, and asks them by round robin")
		}
		s.Backup = true
	case flag == "down":
		s.Down, s.Drain = true, false
	case flag == "drain" && !p.section.stream:
		s.Down, s.Drain = false, true
	case flag == "resolve":
		s.Resolve = true
	default:
		return p.foreignParameter(d, s, word)
	}
	return nil
}

func (p *parser) failTimeout(d *conflex.Directive, value string) (time.Duration, bool) {
	n, ok := conflex.Seconds(value)
	switch {
	case !ok:
		return 0, false
	case n == 0:
		return balancer.NoFailTimeout, true
	case n > math.MaxInt64/int64(time.Second):
		p.warn(d, CodeFailTimeout, "fail_timeout="+value, "fail_timeout is longer than 292 years",
			"it counts as the longest time there is")
		return math.MaxInt64, true
	}
	return time.Duration(n) * time.Second, true
}

// number reads a number that fits an int, which on 64-bit machines is nginx's own.
func number(s string) (int, bool) {
	n, ok := conflex.Number(s)
	return int(n), ok && n <= math.MaxInt
}

// serverAddr reads the address; n is the number of addresses behind it, as far
// as they are known.
func (p *parser) serverAddr(d *conflex.Directive, s *balancer.Server) (n int, err *ParseError) {
	refuse := func(message string) *ParseError {
		return p.refuse(d, s.Name, message, hintAddr(d, s.Name))
	}
	if s.Service != "" && !s.Resolve {
		return 0, refuse(fmt.Sprintf(`service upstream "%s" requires "resolve" parameter`, s.Name))
	}
	a, reason := conflex.ParseAddr(s.Name, 80)
	if reason != "" {
		return 0, refuse(fmt.Sprintf(`%s in upstream "%s"`, reason, s.Name))
	}
	byName := a.IsName() || a.Numeric // what nginx itself cannot read
	if n = 1; byName && !s.Resolve {
		if n, err = p.lookup(d, a); err != nil {
			return 0, err
		}
	}
	switch {
	case s.Service != "" && !a.NoPort:
		return 0, refuse(fmt.Sprintf(`service upstream "%s" may not have port`, s.Name))
	case s.Service != "" && !byName:
		return 0, refuse(fmt.Sprintf(`service upstream "%s" requires domain name`, s.Name))
	case s.Service == "" && a.NoPort && p.section.stream:
		return 0, refuse(fmt.Sprintf(`no port in upstream "%s"`, s.Name))
	}
	s.Resolve = s.Resolve && byName
	s.Addr = a.String()
	return n, nil
}

// lookup looks a name up, if there is a Lookup. It does not for names that no
// resolver can know.
func (p *parser) lookup(d *conflex.Directive, a conflex.Addr) (int, *ParseError) {
	if a.Numeric {
		return 1, nil
	}
	notFound := func(cause error) *ParseError {
		err := p.refuse(d, a.Text, fmt.Sprintf(`host not found in upstream "%s"`, a.Text), hintAddr(d, a.Text))
		err.Cause = cause
		return err
	}
	if p.opts.Lookup == nil {
		if strings.ContainsAny(a.Host, "$*\\#@%(){}<> \t\r\n") {
			return 0, notFound(nil)
		}
		return 1, nil
	}
	ips, cause := p.opts.Lookup(a.Host)
	if cause != nil || len(ips) == 0 {
		return 0, notFound(cause)
	}
	return len(ips), nil
}

// addWeight sums the weights of the server's group. nginx lets the sum
// overflow; here it is refused.
func (p *parser) addWeight(d *conflex.Directive, s *balancer.Server, n int) *ParseError {
	group := 0
	if s.Backup {
		group = 1
	}
	weight, sum := int64(max(s.Weight, peer.DefaultWeight)), &p.block.weights[group]
	if int64(n) > (math.MaxInt64-*sum)/weight {
		err := p.refuse(d, s.Name, fmt.Sprintf(`the weights of upstream "%s" sum up to more than 2^63-1`, p.block.Config.Name),
			"nginx takes them and miscounts; only the ratio of the weights matters: write smaller ones")
		err.Cause = &balancer.ConfigError{Server: len(p.block.Config.Servers), Field: "Weight", Value: s.Weight,
			Reason: "the weights of a group must sum up to at most 2^63-1"}
		return err
	}
	*sum += weight * int64(n)
	return nil
}
