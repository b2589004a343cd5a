package nginxconf

import (
	"strings"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// Codes of [Parse] for the method and sticky.
const (
	// CodeMethodRedefined is nginx's warning: of two methods the last counts.
	CodeMethodRedefined balancer.Code = "method-redefined"
	// CodeStickyLost: a sticky above the method's line has no effect.
	CodeStickyLost balancer.Code = "sticky-lost"
)

// choose sets the method, as every method's directive begins.
func (p *parser) choose(d *conflex.Directive, m peer.Method) {
	b := p.block
	if b.chosen {
		p.warn(d, CodeMethodRedefined, d.Name(), "load balancing method redefined", "the last one counts: leave the others out")
	}
	if b.sticky != nil && b.Config.Sticky != nil {
		p.warn(d, CodeStickyLost, d.Name(), "the sticky above the method's line is lost",
			"as in nginx; write sticky below "+d.Name())
		b.StickyLost, b.Config.Sticky = b.sticky, nil
	}
	b.chosen, b.noBackup = true, m.Describe().BackupsFirst
	b.Config.Method = m
}

func (p *parser) hash(d *conflex.Directive) *ParseError {
	m := hash.Method{Key: d.Words[1]}
	if err := p.use(d, m.Key); err != nil {
		return err
	}
	p.choose(d, m)
	if len(d.Words) == 3 {
		if cstr(d.Words[2]) != "consistent" {
			return p.invalidParameter(d, d.Words[2])
		}
		m.Consistent = true
		p.block.Config.Method = m
	}
	return nil
}

func (p *parser) ipHash(d *conflex.Directive) *ParseError {
	p.choose(d, iphash.New())
	return nil
}

func (p *parser) leastConn(d *conflex.Directive) *ParseError {
	p.choose(d, leastconn.New())
	return nil
}

// leastTime reads the mode, whose case nginx does not mind.
func (p *parser) leastTime(d *conflex.Directive) *ParseError {
	mode, ok := leasttime.ParseMode(lower(d.Words[1]))
	m := leasttime.New(mode)
	unfit, names := m.Describe().NotHTTP, "header or last_byte"
	if p.section.stream {
		unfit, names = m.Describe().NotStream, "connect, first_byte or last_byte"
	}
	ok = ok && unfit == ""
	p.choose(d, m)
	if p.block.leastTime {
		return p.duplicate(d)
	}
	p.block.leastTime = true
	m.Inflight = len(d.Words) == 3
	switch {
	case m.Inflight && cstr(d.Words[2]) != "inflight": // nginx looks at it first
		return p.invalidParameter(d, d.Words[2])
	case !ok:
		return p.refuse(d, d.Words[1], `invalid value "`+d.Words[1]+`"`, "write "+names)
	}
	p.block.Config.Method = m
	return nil
}

func (p *parser) random(d *conflex.Directive) *ParseError {
	p.choose(d, random.Method{Two: p.block.two})
	if len(d.Words) == 1 {
		return nil
	}
	if cstr(d.Words[1]) != "two" {
		return p.invalidParameter(d, d.Words[1])
	}
	p.block.two = true
	p.block.Config.Method = random.NewTwo()
	if len(d.Words) == 3 && cstr(d.Words[2]) != "least_conn" {
		err := p.invalidParameter(d, d.Words[2])
		if strings.HasPrefix(d.Words[2], "least_time") {
			return p.foreign(d, d.Words, foreignThing{ClassChoice,
				"of the two, the one with the lower times is meant; without it the one with fewer connections is taken; least_time header looks at all peers"}, err)
		}
		return err
	}
	return nil
}

func (p *parser) invalidParameter(d *conflex.Directive, word string) *ParseError {
	return p.refuse(d, word, `invalid parameter "`+word+`"`, hintParameter(d, word))
}

// use checks the grammar of a text with variables, and remembers them for the
// end of the section.
func (p *parser) use(d *conflex.Directive, text string) *ParseError {
	names, err := conflex.Variables(text)
	if err != nil {
		return p.refuse(d, text, err.Error(), `write $name or ${name}; nginx has no way to write a plain dollar sign`)
	}
	for _, name := range names {
		p.uses(d, name)
	}
	return nil
}

// A use is a variable in an upstream block, in lower case, and its place.
type use struct {
	name, file string
	line       int
}

func (p *parser) uses(d *conflex.Directive, name string) {
	p.block.uses = append(p.block.uses, use{name, p.file(), d.Line})
}

// checkVariables looks for variables that do not exist in nginx. nginx names no line.
func (p *parser) checkVariables(b *block) *ParseError {
	for _, u := range b.uses {
		if p.section.defined[u.name] || knownVariable(u.name, b.Stream) || p.hasVariable(u.name) {
			continue
		}
		return &ParseError{Word: "$" + u.name, Message: `unknown "` + u.name + `" variable`,
			Hint: "it is none of nginx's, and no set, map or similar directive makes it in this text; give Parse a function in ParseOptions.Variables"}
	}
	return nil
}

func (p *parser) hasVariable(name string) bool {
	for v := range p.opts.Variables {
		if lower(v) == name {
			return true
		}
	}
	return false
}
