package nginxconf

import (
	"strings"
	"time"

	"github.com/trunklb/trunk/internal/conflex"
)

// A section is an http { } or stream { }: what nginx checks at its end.
type section struct {
	stream bool
	// upstreams are in the order in which nginx meets them, blocks and mere
	// references alike.
	upstreams []*upstreamRef
	byName    map[string][]*upstreamRef
	// blocks are the upstream blocks in the order of the text.
	blocks []*block
	// defined are the variables that the section itself makes.
	defined map[string]bool
	// passes are what passes to a name, by the name in lower case; dynamic what passes
	// to a variable.
	passes  map[string][]*pass
	dynamic []*pass
	// resolver is the one on the section's own level; nil: there is none.
	// resolverTimeout is 0 where nothing is said.
	resolver        *resolver
	resolverTimeout time.Duration
}

// opensSection reads http { } or stream { }, of which a text has at most one each.
func opensSection(where place) action {
	return func(p *parser, d *conflex.Directive) *ParseError {
		seen := &p.http
		if where == inStream {
			seen = &p.stream
		}
		if *seen {
			return p.refuse(d, d.Name(), `"`+d.Name()+`" directive is duplicate`, "")
		}
		*seen = true
		return p.readSection(d.Block, where)
	}
}

// readSection reads the inside of a section and does what nginx does at its end.
func (p *parser) readSection(b *conflex.Block, where place) *ParseError {
	p.section = &section{stream: where == inStream, byName: map[string][]*upstreamRef{},
		defined: map[string]bool{}, passes: map[string][]*pass{}}
	defer func() { p.section = nil }()
	if err := p.walk(b, position{where, &level{}}); err != nil {
		return err
	}
	return p.endSection()
}

// opensLevel reads a block that inherits the settings of the one around it.
func opensLevel(where place) action {
	return func(p *parser, d *conflex.Directive) *ParseError {
		return p.walk(d.Block, position{where, &level{parent: p.at.level, location: p.at.level.location}})
	}
}

// location reads a location, whose words name its level.
func (p *parser) location(d *conflex.Directive) *ParseError {
	if m := d.Words[1]; len(d.Words) == 3 && m != "=" && m != "^~" && m != "~" && m != "~*" {
		return p.refuse(d, m, `invalid location modifier "`+m+`"`, "modifiers are =, ^~, ~ and ~*")
	}
	return p.walk(d.Block, position{inLocation, &level{parent: p.at.level, location: strings.Join(d.Args(), " ")}})
}

// table reads a block whose lines are not directives, such as map's. Only
// include is one.
func (p *parser) table(d *conflex.Directive) *ParseError { return p.lines(d.Block) }

func (p *parser) lines(b *conflex.Block) *ParseError {
	for _, d := range b.Directives {
		if d.Block != nil {
			return p.refuse(d, d.Name(), `unexpected "{"`, `quotes go around a word with braces`)
		}
		if d.Name() == "include" && len(d.Words) == 2 && p.opts.Include != nil {
			if err := p.includes(d, p.lines); err != nil {
				return err
			}
		}
	}
	return p.syntax(b.Err)
}
