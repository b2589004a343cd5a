package conflex

import "strings"

// isLua reports whether a directive's braces hold Lua.
func isLua(name string) bool { return strings.HasSuffix(name, "_by_lua_block") }

// lua reads the rest of a Lua block, with its closing brace. Braces count as
// Lua reads them: not in strings, long strings and comments.
func (l *lexer) lua() (body string, ok bool) {
	start := l.pos
	for depth := 1; l.pos < len(l.text); {
		switch c := l.text[l.pos]; c {
		case '{':
			depth++
			l.pos++
		case '}':
			depth--
			l.pos++
			if depth == 0 {
				return l.text[start : l.pos-1], true
			}
		case '"', '\'':
			l.luaString(c)
		case '[':
			if n := l.luaLong(); n > 0 {
				l.advance(n)
			} else {
				l.pos++
			}
		case '-':
			l.luaComment()
		case '\n':
			l.line++
			l.pos++
		default:
			l.pos++
		}
	}
	return "", false
}

// luaString skips a string in quotes, up to the end of its line if it has none.
func (l *lexer) luaString(quote byte) {
	for l.pos++; l.pos < len(l.text); l.pos++ {
		switch l.text[l.pos] {
		case quote:
			l.pos++
			return
		case '\n':
			return
		case '\\':
			l.skip()
		}
	}
}

// luaComment skips a comment, or a minus sign.
func (l *lexer) luaComment() {
	l.pos++
	if !strings.HasPrefix(l.text[l.pos:], "-") {
		return
	}
	l.pos++
	if n := l.luaLong(); n > 0 {
		l.advance(n)
		return
	}
	if n := strings.IndexByte(l.text[l.pos:], '\n'); n >= 0 {
		l.pos += n
	} else {
		l.pos = len(l.text)
	}
}

// luaLong is the length of the long string [[ ]], [=[ ]=], ... that begins
// here, up to the text's end if it has no end; 0: none begins here.
func (l *lexer) luaLong() int {
	rest := l.text[l.pos:]
	if !strings.HasPrefix(rest, "[") {
		return 0
	}
	level := len(rest[1:]) - len(strings.TrimLeft(rest[1:], "="))
	if !strings.HasPrefix(rest[1+level:], "[") {
		return 0
	}
	closing := "]" + rest[1:1+level] + "]"
	if n := strings.Index(rest[2+level:], closing); n >= 0 {
		return 2 + level + n + len(closing)
	}
	return len(rest)
}

// advance moves n bytes on and counts the lines.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.text[l.pos:l.pos+n], "\n")
	l.pos += n
}
