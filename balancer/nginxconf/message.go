package nginxconf

import (
	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
)

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
