package nginxconf

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/sticky"
)

// A block is an upstream block while it is read.
type block struct {
	Block
	zone *zone

	// chosen: a method or sticky has been set, so that the next method redefines
	// it. noBackup: by the method so far a server cannot be a backup.
	chosen, noBackup bool
	leastTime        bool // there was one: a second is a duplicate
	two              bool // random two: nginx never takes it back
	sticky           sticky.Sticky

	// uses are the variables in the block, jvm a jvm_route that was converted.
	uses []use
	jvm  *jvmRoute
	// resolver is the block's own; nil: there is none. dynamic: its names are to be
	// looked up again, by a directive of another module that was converted.
	resolver *resolver
	dynamic  bool
	// refused: a directive in it was, so that what it lacks may have been there.
	refused bool
	// seen are the directives that may be given once.
	seen map[string]bool
	// weights are the sums of the two groups so far.
	weights [2]int64
}

// An upstreamRef is a name that is, or may be, an upstream: a block, or
// what a proxy_pass and its kin pass to.
type upstreamRef struct {
	host   string
	port   int
	noPort bool
	block  *block
	file   string
	line   int
}

// upstream reads an upstream block.
func (p *parser) upstream(d *conflex.Directive) *ParseError {
	b := &block{seen: map[string]bool{}}
	b.Config.Name, b.Stream = d.Words[1], p.section.stream
	b.File, b.Line = p.file(), d.Line
	b.Keepalive = defaultKeepalive
	if err := p.addBlock(d, b); err != nil {
		return err
	}
	p.section.blocks = append(p.section.blocks, b)
	p.block = b
	where := inUpstream
	if b.Stream {
		where = inStreamUpstream
	}
	err := p.walk(d.Block, position{where: where})
	p.block = nil
	if err != nil {
		return err
	}
	if len(b.Config.Servers) == 0 && !b.refused {
		err := p.refuse(d, b.Config.Name, "no servers are inside upstream", "write at least one server line")
		err.Line = d.Block.End
		return err
	}
	return nil
}

// addBlock enters a block among the upstreams of its section.
func (p *parser) addBlock(d *conflex.Directive, b *block) *ParseError {
	key := lower(b.Config.Name)
	if refs := p.section.byName[key]; len(refs) > 0 {
		ref := refs[0] // nginx looks no further
		if ref.block != nil {
			return p.refuse(d, b.Config.Name, fmt.Sprintf(`duplicate upstream "%s"`, b.Config.Name),
				fmt.Sprintf("the other one is in %s; names compare without case", lineOf(ref.file, ref.line)))
		}
		if !ref.noPort {
			err := p.refuse(d, ref.host, fmt.Sprintf(`upstream "%s" may not have port %d`, b.Config.Name, ref.port),
				"leave the port out where the location passes to the upstream; the servers have the ports")
			err.File, err.Line = ref.file, ref.line
			return err
		}
		ref.block, ref.file, ref.line = b, b.File, b.Line
		return nil
	}
	p.section.add(&upstreamRef{host: b.Config.Name, noPort: true, block: b, file: b.File, line: b.Line})
	return nil
}

func (s *section) add(ref *upstreamRef) {
	s.upstreams = append(s.upstreams, ref)
	key := lower(ref.host)
	s.byName[key] = append(s.byName[key], ref)
}

// lineOf names a line in a message.
func lineOf(file string, line int) string {
	if file == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s, line %d", file, line)
}

// endSection makes the checks that nginx makes at the end of http { } or
// stream { }, in its order: upstream by upstream, then the variables.
func (p *parser) endSection() *ParseError {
	for _, ref := range p.section.upstreams {
		if err := p.pastRefusal(p.initUpstream(ref)); err != nil {
			return err
		}
	}
	for _, b := range p.section.blocks {
		if err := p.pastRefusal(p.checkVariables(b)); err != nil {
			return err
		}
	}
	for _, b := range p.section.blocks {
		p.retryOf(b)
		p.variablesOf(b)
		p.lint(b)
		p.out.Blocks = append(p.out.Blocks, b.Block)
	}
	p.unreadRetries()
	return nil
}

// initUpstream checks an upstream as a whole.
func (p *parser) initUpstream(ref *upstreamRef) *ParseError {
	if ref.block == nil {
		return p.initImplicit(ref)
	}
	b := ref.block
	refuse := func(message, hint string) *ParseError {
		return &ParseError{File: b.File, Line: b.Line, Word: b.Config.Name, Message: message, Hint: hint}
	}
	p.inherit(b)
	resolves := slices.ContainsFunc(b.Config.Servers, func(s balancer.Server) bool { return s.Resolve })
	switch {
	case b.refused: // what it lacks may have been there
	case resolves && b.zone == nil:
		return refuse(fmt.Sprintf(`resolving names at run time requires upstream "%s" to be in shared memory`, b.Config.Name),
			"write zone NAME 256k; into the block, or leave resolve out")
	case resolves && b.resolver == nil:
		return refuse(fmt.Sprintf(`no resolver defined to resolve names at run time in upstream "%s"`, b.Config.Name),
			"write resolver ADDRESS; into the block")
	case !slices.ContainsFunc(b.Config.Servers, func(s balancer.Server) bool { return !s.Backup }):
		return refuse(fmt.Sprintf(`no servers in upstream "%s"`, b.Config.Name),
			"all servers are backups: at least one must not be")
	}
	for i := range b.Config.Servers {
		if s := &b.Config.Servers[i]; b.dynamic && isName(s.Addr) {
			s.Resolve = true
		}
	}
	return nil
}

// variablesOf makes the variables that go into a Config: those of the import and the
// caller's.
func (p *parser) variablesOf(b *block) {
	if b.jvm != nil {
		b.define(jvmRouteVariable, b.jvm.variable(b.Config.Servers))
	}
	for name, f := range p.opts.Variables {
		b.define(name, f)
	}
}

func (b *block) define(name string, f func(*http.Request) string) {
	if b.Config.Variables == nil {
		b.Config.Variables = map[string]func(*http.Request) string{}
	}
	b.Config.Variables[name] = f
}

// lint adds Lint's warnings, with the line of the block. A variable that nginx has and
// trunk has not has its own line; in stream, where the program brings the key, it is
// empty.
func (p *parser) lint(b *block) {
	var known []balancer.Warning
	for {
		all := balancer.Lint(b.Config)
		i := slices.IndexFunc(all, func(w balancer.Warning) bool { return w.Code == balancer.CodeUnknownVariable })
		if i < 0 || !b.Stream {
			known = append(known, all...)
			break
		}
		w := all[i]
		b.define(lower(w.Word[1:]), func(*http.Request) string { return "" })
		w.Message = w.Word + " is no variable that trunk knows, and is empty here"
		w.Hint = "bring the key with each connection: WithInput, Input.Key"
		known = append(known, w)
	}
	for _, w := range known {
		w.File, w.Line = b.File, b.Line
		if w.Code == balancer.CodeUnknownVariable {
			if i := slices.IndexFunc(b.uses, func(u use) bool { return "$"+u.name == lower(w.Word) }); i >= 0 {
				w.File, w.Line = b.uses[i].file, b.uses[i].line
			}
		}
		p.warning(b, w)
	}
}

func isName(addr string) bool {
	a, refusal := conflex.ParseAddr(addr, 80)
	return refusal == "" && a.IsName()
}
