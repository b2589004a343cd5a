package nginxconf

import (
	"fmt"
	"maps"
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

	// variables are those that the import makes.
	variables map[string]func(*http.Request) string
	// seen are the directives that may stand once.
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
	p.section.blocks = append(p.section.blocks, b)
	if err := p.addBlock(d, b); err != nil {
		return err
	}
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
	if len(b.Config.Servers) == 0 {
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
		if err := p.initUpstream(ref); err != nil {
			return err
		}
	}
	if err := p.checkVariables(); err != nil {
		return err
	}
	for _, b := range p.section.blocks {
		p.retryOf(b)
		if len(p.opts.Variables)+len(b.variables) > 0 {
			b.Config.Variables = map[string]func(*http.Request) string{}
			maps.Copy(b.Config.Variables, b.variables)
			maps.Copy(b.Config.Variables, p.opts.Variables)
		}
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
	b.Resolver = b.seen["resolver"] || p.section.resolver && b.zone != nil
	if slices.ContainsFunc(b.Config.Servers, func(s balancer.Server) bool { return s.Resolve }) {
		if b.zone == nil {
			return refuse(fmt.Sprintf(`resolving names at run time requires upstream "%s" to be in shared memory`, b.Config.Name),
				"write zone NAME 256k; into the block, or leave resolve out")
		}
		if !b.Resolver {
			return refuse(fmt.Sprintf(`no resolver defined to resolve names at run time in upstream "%s"`, b.Config.Name),
				"write resolver ADDRESS; into the block")
		}
	}
	if !slices.ContainsFunc(b.Config.Servers, func(s balancer.Server) bool { return !s.Backup }) {
		return refuse(fmt.Sprintf(`no servers in upstream "%s"`, b.Config.Name),
			"all servers are backups: at least one must not be")
	}
	return nil
}

// finish completes the result.
func (p *parser) finish() {
	for i := range p.out.Blocks {
		b := &p.out.Blocks[i]
		for _, w := range balancer.Lint(b.Config) {
			w.File, w.Line = b.File, b.Line
			b.Config.Warnings = append(b.Config.Warnings, w)
			p.out.Warnings = append(p.out.Warnings, w)
		}
	}
}
