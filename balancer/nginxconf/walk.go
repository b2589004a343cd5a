package nginxconf

import (
	"strings"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
)

// A parser executes directives in the order of the text, as nginx does.
type parser struct {
	opts *ParseOptions
	out  *File
	// files are the include files that are open, includes how many there were.
	files    []string
	includes int
	// zones are the shared memory zones of the whole text.
	zones map[string]*zone
	// http and stream say which sections there were; section is the one
	// that is read, block the upstream block in it.
	http, stream bool
	section      *section
	block        *block
	// noted are the names of foreign directives that have been mentioned.
	noted map[string]bool
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
	// uses are the variables of the upstream blocks, defined those that the
	// section itself makes.
	uses    []string
	defined map[string]bool
	// passes are what passes to a name, by the name in lower case.
	passes map[string][]*pass
	// resolver: there is one on the section's own level.
	resolver bool
}

// A position is where a directive stands: what may stand there, and the level
// whose settings hold.
type position struct {
	where place
	level *level
}

// text reads the text itself. One without http { } and stream { } is read as
// the inside of an http { }.
func (p *parser) text(b *conflex.Block) *ParseError {
	var err *ParseError
	if isWhole(b) {
		err = p.walk(b, position{inMain, nil})
	} else {
		err = p.inSection(false, func(at position) *ParseError { return p.walk(b, at) })
	}
	if err != nil {
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

// inSection reads a section and does what nginx does at its end.
func (p *parser) inSection(stream bool, read func(position) *ParseError) *ParseError {
	p.section = &section{stream: stream, byName: map[string][]*upstreamRef{},
		defined: map[string]bool{}, passes: map[string][]*pass{}}
	at := position{inHTTP, &level{}}
	if stream {
		at.where = inStream
	}
	err := read(at)
	if err == nil {
		err = p.endSection()
	}
	p.section = nil
	return err
}

// walk executes the directives of a block, up to the place where the text goes
// wrong.
func (p *parser) walk(b *conflex.Block, at position) *ParseError {
	for _, d := range b.Directives {
		if err := p.directive(d, at); err != nil {
			return err
		}
	}
	return p.syntax(b.Err)
}

// directive executes a directive outside the upstream blocks.
func (p *parser) directive(d *conflex.Directive, at position) *ParseError {
	verdict := command(d.Name(), at.where)
	if err := p.standing(d, verdict, at); err != nil {
		return err
	}
	if verdict == unknown || verdict == notHere && !p.readsAnyway(d) {
		return p.foreignOutside(d, at)
	}
	p.define(d)
	switch d.Name() {
	case "include":
		return p.include(d, func(b *conflex.Block) *ParseError { return p.walk(b, at) })
	case "http", "stream":
		return p.sectionDirective(d)
	case "upstream":
		return p.upstream(d)
	case "server", "location", "if", "limit_except":
		return p.levelDirective(d, at)
	case "map", "geo", "types", "split_clients", "charset_map":
		return p.table(d.Block)
	case "resolver":
		if at.where&(inHTTP|inStream) != 0 {
			p.section.resolver = true
		}
		return nil
	}
	if d.Block != nil { // events, mail
		return p.syntax(d.Block.Syntax())
	}
	return p.retryDirective(d, at)
}

// readsAnyway reports whether a lenient reading goes into a block that nginx
// would not have in this place: a location beside its upstream, as people paste it.
func (p *parser) readsAnyway(d *conflex.Directive) bool {
	return p.section != nil && d.Block != nil && (d.Name() == "location" || d.Name() == "upstream")
}

// standing checks that a directive's name is known here, and how it ends.
func (p *parser) standing(d *conflex.Directive, v verdict, at position) *ParseError {
	name := cstr(d.Name())
	switch {
	case v == simple && d.Block != nil:
		return p.refuse(d, name, `directive "`+name+`" is not terminated by ";"`, hintUnterminated(d))
	case v == braces && d.Block == nil:
		return p.refuse(d, name, `directive "`+name+`" has no opening "{"`, hintNoBrace(d))
	case v == notHere && !p.opts.Lenient:
		return p.refuse(d, name, `"`+name+`" directive is not allowed here`, hintNotHere(d, at.where))
	case v == unknown && !p.passesOutside(d, at):
		return p.refuse(d, name, `unknown directive "`+name+`"`, hintUnknown(d))
	}
	return nil
}

func (p *parser) sectionDirective(d *conflex.Directive) *ParseError {
	if len(d.Args()) > 0 {
		return p.wrongCount(d)
	}
	stream := d.Name() == "stream"
	seen := &p.http
	if stream {
		seen = &p.stream
	}
	if *seen {
		return p.refuse(d, d.Name(), `"`+d.Name()+`" directive is duplicate`, "")
	}
	*seen = true
	return p.inSection(stream, func(at position) *ParseError { return p.walk(d.Block, at) })
}

// levelDirective reads a block that inherits the settings of the one around it.
func (p *parser) levelDirective(d *conflex.Directive, at position) *ParseError {
	inner := position{level: &level{parent: at.level}}
	if err := p.levelWords(d); err != nil {
		return err
	}
	switch d.Name() {
	case "server":
		inner.where = inHTTPServer
		if at.where == inStream {
			inner.where = inStreamServer
		}
	case "location":
		inner.where = inLocation
		inner.level.location = strings.Join(d.Args(), " ")
	case "if":
		inner.where = inServerIf
		if at.where == inLocation {
			inner.where = inLocationIf
		}
	case "limit_except":
		inner.where = inLimitExcept
	}
	if inner.level.location == "" && at.level != nil {
		inner.level.location = at.level.location
	}
	return p.walk(d.Block, inner)
}

// levelWords checks the words in front of such a block.
func (p *parser) levelWords(d *conflex.Directive) *ParseError {
	n := len(d.Args())
	switch d.Name() {
	case "server":
		if n != 0 {
			return p.wrongCount(d)
		}
	case "location":
		if n < 1 || n > 2 {
			return p.wrongCount(d)
		}
		if m := d.Words[1]; n == 2 && m != "=" && m != "^~" && m != "~" && m != "~*" {
			return p.refuse(d, m, `invalid location modifier "`+m+`"`, "modifiers are =, ^~, ~ and ~*")
		}
	default:
		if n == 0 {
			return p.wrongCount(d)
		}
	}
	return nil
}

// table reads a block whose lines are not directives, such as map's. Only
// include is one.
func (p *parser) table(b *conflex.Block) *ParseError {
	for _, d := range b.Directives {
		if d.Block != nil {
			return p.refuse(d, d.Name(), `unexpected "{"`, `quotes go around a word with braces`)
		}
		if d.Name() == "include" && len(d.Words) == 2 && p.opts.Include != nil {
			if err := p.include(d, p.table); err != nil {
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
			p.section.defined[strings.ToLower(w[1:])] = true
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
// Of a foreign one nobody knows: its variables are taken to be new.
func definesVariables(name string) bool {
	switch name {
	case "set", "map", "geo", "split_clients", "auth_request_set", "perl_set":
		return true
	}
	return command(name, anywhere) == unknown
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
			p.section.defined[strings.ToLower(rest[1:1+end])] = true
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
