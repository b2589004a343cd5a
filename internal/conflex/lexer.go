package conflex

import (
	"fmt"
	"strings"
)

// endOfText is the end of a text that ends where a directive may begin.
const endOfText = 0

// tokenLimit is the size of nginx's buffer: a word, with the quote that ends
// it, or a comment does not fit when it is as long and more text follows.
const tokenLimit = 4096

// A lexer cuts a text into directives' words, by nginx's rules:
//
//   - words end at white space, ";" and "{"; only the start of a word makes
//     "#" a comment, '"' and "'" a quote, and "}" a brace;
//   - a "{" after "$" is part of the word;
//   - a closing quote is followed by white space, ";", "{" or ")", and the
//     last begins a word of its own;
//   - white space is space, tab, CR and LF, and nothing else.
type lexer struct {
	text string
	pos  int
	line int
}

// next reads up to the next ";" or "{" (a directive), "}" or the text's end.
func (l *lexer) next() (d *Directive, end byte, err *SyntaxError) {
	d = &Directive{}
	for {
		if err := l.space(d); err != nil {
			return nil, 0, err
		}
		if l.pos == len(l.text) {
			if len(d.Words) > 0 {
				return nil, 0, l.unfinished(d)
			}
			return nil, endOfText, nil
		}
		c := l.text[l.pos]
		switch {
		case c == ';' || c == '{':
			l.pos++
			if len(d.Words) == 0 {
				return nil, 0, l.unexpected(d, c)
			}
			d.Line = l.line
			return d, c, nil
		case c == '}':
			l.pos++
			if len(d.Words) > 0 {
				return nil, 0, l.unexpected(d, c)
			}
			return nil, c, nil
		}
		if len(d.Words) == 0 {
			d.Start = l.line
		}
		if c == '"' || c == '\'' {
			err = l.quoted(d, c)
		} else {
			err = l.bare(d)
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// space skips white space and comments.
func (l *lexer) space(d *Directive) *SyntaxError {
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case c == '\n':
			l.line++
			l.pos++
		case isSpace(c):
			l.pos++
		case c == '#':
			start := l.pos
			n := strings.IndexByte(l.text[start:], '\n')
			if n < 0 {
				n = len(l.text) - start
			}
			l.pos += n
			if l.long(start, n) {
				return l.tooLong(d, start, 0)
			}
		default:
			return nil
		}
	}
	return nil
}

// bare reads a word that does not begin with a quote.
func (l *lexer) bare(d *Directive) *SyntaxError {
	start, line := l.pos, l.line
	n, escapes := bareWord(l.text[start:])
	l.pos += n
	l.line += strings.Count(l.text[start:l.pos], "\n")
	if l.long(start, l.pos-start) {
		l.line = line
		return l.tooLong(d, start, 0)
	}
	if l.pos == len(l.text) {
		return l.unfinished(d, l.text[start:])
	}
	d.Words = append(d.Words, unescape(l.text[start:l.pos], escapes))
	return nil
}

// bareWord returns the length of the word at the beginning of a text, and whether it
// holds a backslash with what it escapes.
func bareWord(text string) (n int, escapes bool) {
	variable := false
	for ; n < len(text); n++ {
		c := text[n]
		if c == '{' && variable {
			continue
		}
		variable = c == '$'
		if isSpace(c) || c == ';' || c == '{' {
			break
		}
		if c == '\\' && n+1 < len(text) {
			escapes = true
			n++
		}
	}
	return n, escapes
}

// quoted reads a word in quotes and checks what follows it.
func (l *lexer) quoted(d *Directive, quote byte) *SyntaxError {
	line := l.line
	l.pos++
	start, escapes := l.pos, false
	for ; l.pos < len(l.text) && l.text[l.pos] != quote; l.pos++ {
		switch l.text[l.pos] {
		case '\n':
			l.line++
		case '\\':
			escapes = l.skip() || escapes
		}
	}
	if l.long(start, l.pos-start+1) { // with the closing quote
		l.line = line
		if l.pos-start < tokenLimit {
			quote = 0 // all but the quote has been read
		}
		return l.tooLong(d, start, quote)
	}
	if l.pos == len(l.text) {
		return l.unfinished(d, l.text[start:])
	}
	d.Words = append(d.Words, unescape(l.text[start:l.pos], escapes))
	l.pos++ // the closing quote
	if l.pos == len(l.text) {
		return l.unfinished(d)
	}
	if c := l.text[l.pos]; !isSpace(c) && c != ';' && c != '{' && c != ')' {
		return l.unexpected(d, c)
	}
	if l.text[l.pos] == ')' {
		return l.bare(d) // even if it is followed by what would end a word: ")" is one
	}
	return nil
}

// skip moves to the character behind a backslash, whatever it is.
func (l *lexer) skip() bool {
	if l.pos+1 == len(l.text) {
		return false
	}
	l.pos++
	if l.text[l.pos] == '\n' {
		l.line++
	}
	return true
}

// long reports whether n bytes from start on fill nginx's buffer, with more
// text to come.
func (l *lexer) long(start, n int) bool {
	return n >= tokenLimit && start+tokenLimit < len(l.text)
}

func (l *lexer) tooLong(d *Directive, start int, quote byte) *SyntaxError {
	e := l.fail(d)
	if quote != 0 {
		e.Message = fmt.Sprintf(`too long parameter, probably missing terminating "%c" character`, quote)
	} else {
		e.Message = fmt.Sprintf(`too long parameter "%s..." started`, l.text[start:start+10])
	}
	return e
}

func (l *lexer) unexpected(d *Directive, c byte) *SyntaxError {
	e := l.fail(d)
	e.Message = `unexpected "` + string([]byte{c}) + `"` // one byte, as nginx prints it
	return e
}

// unfinished is the error of a text that ends within a directive, whose last
// word may be unfinished too.
func (l *lexer) unfinished(d *Directive, word ...string) *SyntaxError {
	d.Words = append(d.Words, word...)
	e := l.fail(d)
	e.Message = `unexpected end of file, expecting ";" or "}"`
	return e
}

func (l *lexer) fail(d *Directive) *SyntaxError {
	return &SyntaxError{Line: l.line, Start: d.Start, Words: d.Words}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

var unescaper = strings.NewReplacer(
	`\\`, `\`, `\"`, `"`, `\'`, `'`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

// unescape resolves the six escapes that nginx knows; before any other
// character a backslash stays.
func unescape(raw string, escapes bool) string {
	if !escapes {
		return raw
	}
	return unescaper.Replace(raw)
}
