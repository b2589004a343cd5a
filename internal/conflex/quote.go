package conflex

import "strings"

// Quote writes a word so that reading gives it back: as it is where that
// works, else in the quotes that need fewer escapes. It is never longer than
// what the word was read from, so it fits nginx's buffer if that did.
func Quote(word string) string {
	raw := escape(word, 0)
	if isBare(raw, word) {
		return raw
	}
	if strings.Count(word, `"`) <= strings.Count(word, `'`) {
		return `"` + escape(word, '"') + `"`
	}
	return `'` + escape(word, '\'') + `'`
}

// isBare reports whether the raw text, unquoted, is read as the word.
func isBare(raw, word string) bool {
	l := lexer{text: raw + ";", line: 1}
	d, end, err := l.next()
	return err == nil && end == ';' && l.pos == len(l.text) &&
		len(d.Words) == 1 && d.Words[0] == word &&
		raw != "" && raw[0] != '"' && raw[0] != '\''
}

// escape puts a backslash where reading takes one away: before the quote, and
// before a backslash that would otherwise begin an escape.
func escape(word string, quote byte) string {
	if !strings.ContainsAny(word, `\"'`) {
		return word
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		c := word[i]
		ambiguous := c == '\\' && (i+1 == len(word) || strings.IndexByte(`\"'trn`, word[i+1]) >= 0)
		if ambiguous || c == quote && quote != 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
