package nginxconf

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/internal/fields"
	"github.com/trunklb/trunk/internal/spell"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// Format writes a configuration as an upstream block that nginx takes, and that
// [Parse] reads back as the same. A retry policy follows in a server block, since
// nginx has it in the location that passes to the upstream; a method that only
// stream has comes in stream { }. What nginx has no words for becomes a comment.
func Format(c balancer.Config) string {
	b := Block{Config: c}
	b.Stream = peer.Describe(c.Method).NotHTTP != ""
	return b.String()
}

// String writes the block as [Format] does, in stream { } if it is one of stream.
func (b Block) String() string {
	p := &printer{}
	if !b.Stream {
		p.upstream(&b)
		p.location(&b)
		return p.String()
	}
	p.open("stream {")
	p.upstream(&b)
	p.location(&b)
	p.close()
	return p.String()
}

// A printer writes lines.
type printer struct {
	strings.Builder
	indent int
}

func (p *printer) line(text string) {
	p.WriteString(strings.Repeat("    ", p.indent))
	p.WriteString(text)
	p.WriteByte('\n')
}

func (p *printer) open(text string) {
	p.line(text)
	p.indent++
}

func (p *printer) close() {
	p.indent--
	p.line("}")
}

// directive writes words, the values quoted where they must be.
func (p *printer) directive(name string, args ...string) {
	words := []string{name}
	for _, a := range args {
		words = append(words, conflex.Quote(a))
	}
	p.line(strings.Join(words, " ") + ";")
}

// longestComment keeps comments in nginx's buffer.
const longestComment = 2000

// comment writes what nginx has no words for, on one line whatever it holds.
func (p *printer) comment(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.line("# " + oneLine([]string{text[:min(len(text), longestComment)]}))
}

// own writes the fields of a struct that nginx has no words for, if they are
// set.
func (p *printer) own(what string, v any, nginx string) { p.remedies(what, fields.Set(v, nginx)) }

// remedies writes fields that nginx has no words for.
func (p *printer) remedies(what string, set map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		p.comment("%s%s is trunk's own: %s", what, name, ownValue(set[name]))
	}
}

// ownValue shows a value that is plain, of a struct the fields that are set, and says of
// others that they are set.
func ownValue(v any) string {
	switch reflect.ValueOf(v).Kind() {
	case reflect.Func, reflect.Map, reflect.Pointer, reflect.Interface, reflect.Chan, reflect.Slice:
		return "set"
	case reflect.Struct:
		set := fields.Set(v, "")
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(set)) {
			parts = append(parts, name+": "+ownValue(set[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprintf("%+v", v)
}

func (p *printer) upstream(b *Block) {
	c := &b.Config
	p.open("upstream " + conflex.Quote(c.Name) + " {")
	p.own("", *c, "Name Servers Method Sticky Retry Warnings Keepalive KeepaliveTimeout ResolveInterval ResolveTimeout ResolveNetwork")
	p.run(b)
	late := peer.Describe(c.Method).BackupsFirst && hasBackup(c.Servers)
	if !late {
		p.method(c.Method)
		p.sticky(c)
	}
	switch {
	case c.Keepalive == balancer.NoKeepalive:
		p.directive("keepalive", "0")
	case c.Keepalive > 0:
		p.directive("keepalive", strconv.Itoa(c.Keepalive))
	}
	switch d := c.KeepaliveTimeout; {
	case d == balancer.NoKeepalive:
		p.directive("keepalive_timeout", "0")
	case d > 0:
		if d%time.Millisecond != 0 {
			p.comment("KeepaliveTimeout=%v is finer than nginx's millisecond", d)
		}
		p.directive("keepalive_timeout", spell.Millis(d))
	}
	for i := range c.Servers {
		p.server(&c.Servers[i], b.Stream)
	}
	if late {
		p.method(c.Method)
		p.sticky(c)
	}
	p.close()
}

// run writes what nginx needs to look names up while it runs: what was read, or else
// what will do.
func (p *printer) run(b *Block) {
	c := &b.Config
	names := slices.ContainsFunc(c.Servers, func(s balancer.Server) bool { return s.Resolve })
	switch z := b.Zone; {
	case z.Name != "" && z.Size > 0:
		p.directive("zone", z.Name, sizeText(z.Size))
	case z.Name != "":
		p.directive("zone", z.Name)
	case names:
		p.directive("zone", "upstream_"+c.Name, "256k")
	}
	if names || c.ResolveInterval != 0 || c.ResolveNetwork != "" || b.Resolver != nil {
		p.comment("nginx asks this name server; trunk asks Config.Resolver")
		p.directive("resolver", p.resolverArgs(b)...)
	}
	if c.ResolveTimeout > 0 {
		p.directive("resolver_timeout", spell.Millis(c.ResolveTimeout))
	}
}

// sizeText writes a number of bytes, in m or k where they are whole.
func sizeText(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "m"
	case n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// resolverArgs are the addresses and parameters that were read, but for those that the
// Config says.
func (p *printer) resolverArgs(b *Block) (args []string) {
	for _, word := range b.Resolver {
		switch name, _, _ := strings.Cut(word, "="); name {
		case "valid", "ipv4", "ipv6":
		default:
			args = append(args, word)
		}
	}
	if args == nil {
		args = []string{"127.0.0.1"}
	}
	if d := b.Config.ResolveInterval; d > 0 {
		if d%time.Second != 0 {
			p.comment("ResolveInterval=%v is finer than nginx's second", d)
		}
		args = append(args, "valid="+spell.Seconds(max(d, time.Second)))
	}
	switch b.Config.ResolveNetwork {
	case "ip4":
		args = append(args, "ipv6=off")
	case "ip6":
		args = append(args, "ipv4=off")
	}
	return args
}

func hasBackup(servers []balancer.Server) bool {
	for i := range servers {
		if servers[i].Backup {
			return true
		}
	}
	return false
}

func (p *printer) method(m peer.Method) {
	d := peer.Describe(m)
	switch {
	case d.Directive != nil:
		p.directive(d.Directive[0], d.Directive[1:]...)
	case !d.RoundRobin:
		p.comment("nginx does not have the method: %s", d.Name)
	}
	p.remedies("the method's ", d.Remedies)
}

func (p *printer) sticky(c *balancer.Config) {
	d := sticky.Describe(c.Sticky)
	if d.Directive == nil {
		return
	}
	args := d.Directive[1:]
	for i, arg := range args {
		if size, nameless := strings.CutPrefix(arg, "zone=:"); nameless {
			args[i] = "zone=sticky_" + c.Name + ":" + size
		}
	}
	p.directive(d.Directive[0], args...)
	p.remedies("sticky's ", d.Remedies)
}

func (p *printer) server(s *balancer.Server, stream bool) {
	name := s.Name
	if a, refusal := conflex.ParseAddr(name, 80); name == "" || refusal != "" || a.String() != s.Addr {
		if name != "" && name != s.Addr {
			p.comment("of the name %s", name)
		}
		name = s.Addr
	}
	args := []string{name}
	add := func(name string, n int) { args = append(args, name+"="+strconv.Itoa(n)) }
	if s.Weight != 0 {
		add("weight", s.Weight)
	}
	if s.MaxConns != 0 {
		add("max_conns", s.MaxConns)
	}
	switch {
	case s.MaxFails == balancer.NoMaxFails:
		add("max_fails", 0)
	case s.MaxFails != 0:
		add("max_fails", s.MaxFails)
	}
	switch {
	case s.FailTimeout == balancer.NoFailTimeout:
		args = append(args, "fail_timeout=0")
	case s.FailTimeout > 0:
		if s.FailTimeout%time.Second != 0 && s.FailTimeout != math.MaxInt64 {
			p.comment("fail_timeout=%v is finer than nginx's second", s.FailTimeout)
		}
		args = append(args, "fail_timeout="+spell.Seconds(max(s.FailTimeout, time.Second)))
	}
	args = append(args, serverFlags(s, stream)...)
	p.own("the next server's ", *s, "Addr Name Weight MaxConns MaxFails FailTimeout Backup Down Drain Route Resolve Service")
	p.directive("server", args...)
}

func serverFlags(s *balancer.Server, stream bool) (args []string) {
	if s.Route != "" && !stream {
		args = append(args, "route="+s.Route)
	}
	if s.Backup {
		args = append(args, "backup")
	}
	switch {
	case s.Down || s.Drain && stream:
		args = append(args, "down") // of down and drain nginx keeps one, and a peer that is both gets nothing
	case s.Drain:
		args = append(args, "drain")
	}
	if s.Resolve {
		args = append(args, "resolve")
	}
	if s.Service != "" {
		args = append(args, "service="+s.Service)
	}
	return args
}

// hostName is a name that proxy_pass takes without doubt.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// location writes the retry policy, in the place that nginx has for it.
func (p *printer) location(b *Block) {
	if reflect.ValueOf(b.Config.Retry).IsZero() {
		return
	}
	r := &b.Config.Retry
	pass := b.pass()
	lines, missing := retryLines(r, strings.TrimSuffix(pass[0], "_pass"), b.Stream)
	comment := func() {
		if missing != 0 {
			p.comment("Retry.On has what %s_next_upstream has no words for: %v", strings.TrimSuffix(pass[0], "_pass"), missing)
		}
		p.own("Retry.", *r, "On Tries Timeout ConnectTimeout SendTimeout ReadTimeout")
	}
	if len(lines) == 0 || !hostName.MatchString(b.Config.Name) {
		for _, l := range lines {
			p.comment("%s", strings.Join(l, " "))
		}
		comment()
		return
	}
	p.open("server {")
	if b.Stream {
		p.directive("listen", "12345")
	} else {
		p.open("location / {")
	}
	p.directive(pass[0], pass[1:]...)
	comment()
	for _, l := range lines {
		p.directive(l[0], l[1:]...)
	}
	if !b.Stream {
		p.close()
	}
	p.close()
}

// pass is the directive that passes to the block: the one that was read, or proxy_pass.
func (b *Block) pass() []string {
	switch {
	case b.Pass != nil:
		return b.Pass
	case b.Stream:
		return []string{"proxy_pass", b.Config.Name}
	}
	return []string{"proxy_pass", "http://" + b.Config.Name}
}

// retryLines are the directives of a retry policy, as far as the family has them. missing
// are kinds of nginx's that another family has.
func retryLines(r *balancer.Retry, family string, stream bool) (lines [][]string, missing balancer.Kind) {
	if on := r.On & (balancer.KindHTTP404<<1 - 1); on != 0 || r.Off || r.NonIdempotent {
		line := []string{family + "_next_upstream"}
		switch {
		case r.Off:
			line = append(line, "off")
		case stream:
			line = append(line, "on")
		default:
			if on == 0 {
				on = balancer.KindError | balancer.KindTimeout
			}
			missing = on
			for _, name := range nextUpstreamKinds[family] {
				if kind := kindOf(name); missing&kind != 0 || name == "non_idempotent" && r.NonIdempotent {
					line = append(line, name)
					missing &^= kind
				}
			}
		}
		if len(line) > 1 {
			lines = append(lines, line)
		}
	}
	if r.Tries > 0 {
		lines = append(lines, []string{family + "_next_upstream_tries", strconv.Itoa(r.Tries)})
	}
	times := []struct {
		name string
		d    time.Duration
	}{
		{"next_upstream_timeout", r.Timeout},
		{"connect_timeout", r.ConnectTimeout},
		{"send_timeout", r.SendTimeout},
		{"read_timeout", r.ReadTimeout},
	}
	if stream {
		times = append(times[:2], times[2])
		times[2].name, times[2].d = "timeout", r.ReadTimeout
	}
	for _, t := range times {
		if t.d > 0 {
			lines = append(lines, []string{family + "_" + t.name, spell.Millis(t.d)})
		}
	}
	return lines, missing
}
