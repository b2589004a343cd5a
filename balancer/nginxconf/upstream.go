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
	depth int // of include files, where it begins
	zone  *zone

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
	if len(d.Args()) != 1 {
		return p.wrongCount(d)
	}
	b := &block{seen: map[string]bool{}, depth: len(p.files)}
	b.Config.Name, b.Stream = d.Words[1], p.section.stream
	b.File, b.Line = p.file(), d.Line
	b.Keepalive = defaultKeepalive
	p.section.blocks = append(p.section.blocks, b)
	if err := p.addBlock(d, b); err != nil {
		return err
	}
	p.block = b
	err := p.walkBlock(d.Block)
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

// walkBlock executes the directives of an upstream block, or of a file
// that it includes.
func (p *parser) walkBlock(b *conflex.Block) *ParseError {
	for _, d := range b.Directives {
		if err := p.inBlock(d); err != nil {
			return err
		}
	}
	return p.syntax(b.Err)
}

// A blockCommand is a directive of upstream blocks: how many arguments it
// takes, and what it does.
type blockCommand struct {
	least, most int
	run         func(*parser, *conflex.Directive) *ParseError
	// other: neither server, sticky nor a method.
	other bool
}

const many = 1 << 30

// blockCommands is filled in init, since include leads back here.
var blockCommands map[string]blockCommand

func init() {
	blockCommands = map[string]blockCommand{
		"server":             {1, many, (*parser).server, false},
		"sticky":             {2, many, (*parser).sticky, false},
		"hash":               {1, 2, (*parser).hash, false},
		"ip_hash":            {0, 0, (*parser).ipHash, false},
		"least_conn":         {0, 0, (*parser).leastConn, false},
		"least_time":         {1, 2, (*parser).leastTime, false},
		"random":             {0, 2, (*parser).random, false},
		"zone":               {1, 2, (*parser).zone, true},
		"keepalive":          {1, 2, (*parser).keepalive, true},
		"keepalive_requests": {1, 1, (*parser).keepaliveRequests, true},
		"keepalive_time":     {1, 1, (*parser).keepaliveTime, true},
		"keepalive_timeout":  {1, 1, (*parser).keepaliveTimeout, true},
		"resolver":           {1, many, (*parser).resolver, true},
		"resolver_timeout":   {1, 1, (*parser).resolverTimeout, true},
		"include":            {1, 1, (*parser).includeServers, true},
	}
}

// inBlock executes a directive of an upstream block.
func (p *parser) inBlock(d *conflex.Directive) *ParseError {
	name, where := cstr(d.Name()), inUpstream
	if p.section.stream {
		where = inStreamUpstream
	}
	switch command(d.Name(), where) {
	case unknown:
		return p.foreignDirective(d)
	case notHere:
		return p.refuse(d, name, `"`+name+`" directive is not allowed here`, hintNotHere(d, where))
	}
	if d.Block != nil {
		return p.refuse(d, name, `directive "`+name+`" is not terminated by ";"`, hintUnterminated(d))
	}
	c := blockCommands[d.Name()]
	if n := len(d.Args()); n < c.least || n > c.most {
		if d.Name() == "sticky" && p.olderSticky(d) {
			return p.stickyOlder(d, p.wrongCount(d))
		}
		return p.wrongCount(d)
	}
	if c.other && len(p.files) == p.block.depth {
		p.block.Other = append(p.block.Other, d.Words)
	}
	return c.run(p, d)
}

func (p *parser) includeServers(d *conflex.Directive) *ParseError {
	return p.include(d, p.walkBlock)
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
