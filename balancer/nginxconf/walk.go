package nginxconf

import "github.com/trunklb/trunk/internal/conflex"

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
