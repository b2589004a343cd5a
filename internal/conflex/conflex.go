// Package conflex reads nginx's configuration language: words, directives
// and blocks, and the units, addresses, variables and names that directives
// are made of. It is syntax alone; what a directive means is its reader's.
//
// nginx executes directives while it reads them, so a mistake in line 5 is
// reported before a missing brace in line 10. [Parse] keeps that order
// possible: it always returns a tree, and a syntax error is in it at the
// place where the text goes wrong, to be met by whoever walks there.
package conflex

import "fmt"

// A Directive is a name with its arguments, ended by ";" or by a block.
type Directive struct {
	// Words are the name and the arguments, unquoted and unescaped.
	Words []string
	// Start is the line of the first word, Line that of the ";" or "{" which
	// ends the words: nginx names the latter in its messages.
	Start, Line int
	// Block is what is in braces; nil: the directive ended with ";".
	Block *Block
	// Lua is the text in the braces of a NAME_by_lua_block, which is not made
	// of directives; Block is then empty.
	Lua string
}

// Name is the directive's first word.
func (d *Directive) Name() string { return d.Words[0] }

// Args are the words after the name.
func (d *Directive) Args() []string { return d.Words[1:] }

// A Block is what is between braces, or a whole text.
type Block struct {
	Directives []*Directive
	// End is the line of the closing brace, or the last one of the text.
	End int
	// Err says that the text goes wrong after the last of Directives.
	Err *SyntaxError
}

// Syntax returns the syntax error somewhere in the block, or nil. It is for
// those who skip a block; who walks it meets the error in its place.
func (b *Block) Syntax() *SyntaxError {
	for b != nil {
		if b.Err != nil {
			return b.Err
		}
		if len(b.Directives) == 0 {
			return nil
		}
		b = b.Directives[len(b.Directives)-1].Block // reading ends at an error: it is in the last one
	}
	return nil
}

// A SyntaxError says where a text stops being nginx's language.
type SyntaxError struct {
	// Line is the line that nginx names, Start the one on which the unfinished
	// directive or block begins (0: none does).
	Line, Start int
	// Message is nginx's wording.
	Message string
	// Words are those of the unfinished directive, or of the one whose block
	// was not closed.
	Words []string
}

func (e *SyntaxError) Error() string { return e.Message }

// mostDepth bounds the nesting of blocks: who walks the tree may recurse.
const mostDepth = 1000

// Parse reads a text. It never fails: see [Block.Err].
func Parse(text string) *Block {
	l := lexer{text: text, line: 1}
	root := &Block{}
	stack := []*Block{root}    // the blocks that are open
	opened := []*Directive{{}} // the directives that opened them
	for {
		b := stack[len(stack)-1]
		d, end, err := l.next()
		switch {
		case err != nil:
			b.Err = err
			return root
		case end == endOfText:
			if len(stack) > 1 {
				o := opened[len(opened)-1]
				b.Err = &SyntaxError{Line: l.line, Start: o.Start, Words: o.Words,
					Message: `unexpected end of file, expecting "}"`}
			}
			b.End = l.line
			return root
		case end == '}':
			if len(stack) == 1 {
				b.Err = &SyntaxError{Line: l.line, Message: `unexpected "}"`}
				return root
			}
			b.End = l.line
			stack, opened = stack[:len(stack)-1], opened[:len(opened)-1]
			continue
		}
		b.Directives = append(b.Directives, d)
		if end != '{' {
			continue
		}
		d.Block = &Block{}
		if isLua(d.Name()) {
			var ok bool
			if d.Lua, ok = l.lua(); !ok {
				d.Block.Err = &SyntaxError{Line: l.line, Start: d.Start, Words: d.Words,
					Message: `unexpected end of file, expecting "}"`}
				return root
			}
			d.Block.End = l.line
			continue
		}
		if len(stack) > mostDepth {
			d.Block.Err = &SyntaxError{Line: l.line, Start: d.Start, Words: d.Words,
				Message: fmt.Sprintf("blocks are nested more than %d deep", mostDepth)}
			return root
		}
		stack, opened = append(stack, d.Block), append(opened, d)
	}
}
