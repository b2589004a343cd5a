package nginxconf

import (
	"strings"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
)

// A parser executes directives in the order of the text, as nginx does.
type parser struct {
	opts *ParseOptions
	out  *File
	// files are the include files that are open; included and includedSize count all
	// there were, and their bytes.
	files                  []string
	included, includedSize int
	// zones are the shared memory zones of the whole text, by name and in order.
	zones   map[string]*zone
	inOrder []*zone
	// http and stream say which sections there were; section is the one
	// that is read, block the upstream block in it.
	http, stream bool
	section      *section
	block        *block
	// at is where the directive is that is executed.
	at position
	// noted are the names of foreign directives that have been mentioned.
	noted map[string]bool
	// refused are the refusals that were read past, with ParseOptions.All.
	refused []error
	// located: the location that was asked for passes to an upstream.
	located bool
}

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

// A position is where a directive is: what may be there, and the level whose settings
// hold. In an upstream block there is no level.
type position struct {
	where place
	level *level
}

// text reads the text itself. One without http { } and stream { } is read as
// the inside of an http { }.
func (p *parser) text(b *conflex.Block) *ParseError {
	read := func() *ParseError { return p.walk(b, position{where: inMain}) }
	if !isWhole(b) {
		read = func() *ParseError { return p.readSection(b, inHTTP) }
	}
	if err := read(); err != nil {
		return err
	}
	return p.checkZones()
}

// isWhole reports whether a text has sections of its own.
func isWhole(b *conflex.Block) bool {
	for _, d := range b.Directives {
		switch d.Name() {
		case "http", "stream", "events", "mail":
			if d.Block != nil {
				return true
			}
		}
	}
	return false
}

// walk executes the directives of a block, up to the place where the text goes
// wrong.
func (p *parser) walk(b *conflex.Block, at position) *ParseError {
	outer := p.at
	defer func() { p.at = outer }()
	p.at = at
	for _, d := range b.Directives {
		if err := p.pastRefusal(p.directive(d)); err != nil {
			return err
		}
	}
	return p.syntax(b.Err)
}

// maxRefusals bounds what one reading finds with ParseOptions.All.
const maxRefusals = 1000

// pastRefusal notes a refusal where the caller wants all of them, and returns it where
// reading ends at the first.
func (p *parser) pastRefusal(err *ParseError) *ParseError {
	if err == nil || !p.opts.All || len(p.refused) == maxRefusals {
		return err
	}
	if p.block != nil {
		p.block.refused = true
	}
	p.refused = append(p.refused, err)
	return nil
}

// directive executes one directive, as the table has it.
func (p *parser) directive(d *conflex.Directive) *ParseError {
	c, known := find(d.Name(), p.at.where)
	if c == nil && p.readsAnyway(d) {
		c, _ = find(d.Name(), anywhere)
	}
	switch {
	case c == nil && !known:
		return p.unknown(d)
	case c == nil:
		return p.misplaced(d)
	case c.form == simple && d.Block != nil:
		return p.refuse(d, cstr(d.Name()), `directive "`+cstr(d.Name())+`" is not terminated by ";"`, hintUnterminated(d))
	case c.form == braces && d.Block == nil:
		return p.refuse(d, cstr(d.Name()), `directive "`+cstr(d.Name())+`" has no opening "{"`, hintNoBrace(d))
	case c.do == nil:
		p.define(d)
		return p.skip(d)
	case len(d.Args()) < c.least || len(d.Args()) > c.most:
		return p.wrongCount(d)
	}
	p.define(d)
	return c.do(p, d)
}

// readsAnyway reports whether a lenient reading goes into a block that nginx
// would not have in this place: a location beside its upstream, as people paste it.
func (p *parser) readsAnyway(d *conflex.Directive) bool {
	return p.opts.Lenient && p.at.level != nil && d.Block != nil && (d.Name() == "location" || d.Name() == "upstream")
}

// misplaced deals with a directive of nginx's own that may not be here.
func (p *parser) misplaced(d *conflex.Directive) *ParseError {
	if p.opts.Lenient && p.at.where&anyUpstream == 0 {
		return p.foreignOutside(d)
	}
	return p.refuse(d, cstr(d.Name()), `"`+cstr(d.Name())+`" directive is not allowed here`, hintNotHere(d, p.at.where))
}

// unknown deals with a directive that is not nginx's.
func (p *parser) unknown(d *conflex.Directive) *ParseError {
	switch {
	case p.at.where&anyUpstream != 0:
		return p.foreignDirective(d)
	case p.passesOutside(d):
		return p.foreignOutside(d)
	}
	err := p.refuse(d, cstr(d.Name()), `unknown directive "`+cstr(d.Name())+`"`, hintUnknown(d))
	if holdsUpstreams(d.Block) {
		err.Class = ClassServers
	}
	return err
}

// skip reads a directive for its grammar alone.
func (p *parser) skip(d *conflex.Directive) *ParseError { return p.syntax(d.Block.Syntax()) }

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

// define remembers the variables that a directive makes: set, map and their
// kin, and the named groups of regular expressions.
func (p *parser) define(d *conflex.Directive) {
	if p.section == nil {
		return
	}
	for i, w := range d.Words {
		if i > 0 && strings.HasPrefix(w, "$") && definesVariables(d.Name()) {
			p.section.defined[lower(w[1:])] = true
		}
		p.defineGroups(w)
	}
	if d.Name() == "map" && d.Block != nil {
		for _, line := range d.Block.Directives {
			p.defineGroups(line.Words[0])
		}
	}
}

// definesVariables reports whether a directive's arguments name new variables.
// Those of an unknown directive are taken to be new.
func definesVariables(name string) bool {
	switch name {
	case "set", "map", "geo", "split_clients", "auth_request_set", "perl_set":
		return true
	}
	return !isKnown(name)
}

// defineGroups finds (?<name>...), (?P<name>...) and (?'name'...).
func (p *parser) defineGroups(word string) {
	for {
		_, rest, found := strings.Cut(word, "(?")
		if !found {
			return
		}
		word = rest
		rest = strings.TrimPrefix(rest, "P")
		if rest == "" || rest[0] != '<' && rest[0] != '\'' {
			continue
		}
		if end := strings.IndexAny(rest[1:], ">'"); end > 0 {
			p.section.defined[lower(rest[1:1+end])] = true
		}
	}
}

// syntax turns a syntax error into the error that is returned.
func (p *parser) syntax(e *conflex.SyntaxError) *ParseError {
	if e == nil {
		return nil
	}
	word := ""
	if len(e.Words) > 0 {
		word = e.Words[len(e.Words)-1]
	}
	return &ParseError{File: p.file(), Line: e.Line, Word: word, Message: e.Message, Hint: hintSyntax(e)}
}

// refuse makes the error of a directive.
func (p *parser) refuse(d *conflex.Directive, word, message, hint string) *ParseError {
	return &ParseError{File: p.file(), Line: d.Line, Word: word, Message: message, Hint: hint}
}

func (p *parser) wrongCount(d *conflex.Directive) *ParseError {
	name := cstr(d.Name())
	return p.refuse(d, name, `invalid number of arguments in "`+name+`" directive`, hintCount(d))
}

func (p *parser) duplicate(d *conflex.Directive) *ParseError {
	return p.refuse(d, d.Name(), `"`+d.Name()+`" directive is duplicate`, "once is enough: leave one of them out")
}

// warn adds a warning about the directive.
func (p *parser) warn(d *conflex.Directive, code balancer.Code, word, message, hint string) {
	p.warning(p.block, balancer.Warning{Code: code, File: p.file(), Line: d.Line, Word: word, Message: message, Hint: hint})
}

func (p *parser) warning(b *block, w balancer.Warning) {
	if b != nil {
		w.Upstream = b.Config.Name
		b.Config.Warnings = append(b.Config.Warnings, w)
	}
	p.out.Warnings = append(p.out.Warnings, w)
}

// ignore notes something that has no effect.
func (p *parser) ignore(line int, words []string, class Class, instead string) {
	o := Ignored{File: p.file(), Line: line, Words: words, Class: class, Instead: instead}
	if p.block != nil {
		o.Upstream = p.block.Config.Name
		p.block.Ignored = append(p.block.Ignored, o)
	}
	p.out.Ignored = append(p.out.Ignored, o)
}

// cstr ends a text at its first NUL, as where nginx compares or prints C
// strings.
func cstr(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// equalName compares names as nginx does: without case, in ASCII.
func equalName(a, b string) bool { return len(a) == len(b) && lower(a) == lower(b) }

// lower is lower case for ASCII letters alone; all other bytes stay.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
