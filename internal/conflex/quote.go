package conflex

import "strings"

// Quote writes a word so that reading gives it back: as it is where that
// works, else in the quotes that need fewer escapes. It is never longer than
// what the word was read from, so it fits nginx's buffer if that did.
func Quote(word string) string {
	raw := escape(word, 0)
	if isBare(raw) {
		return raw
	}
	if strings.Count(word, `"`) <= strings.Count(word, `'`) {
		return `"` + escape(word, '"') + `"`
	}
	return `'` + escape(word, '\'') + `'`
}

// isBare reports whether a raw text is read as one word without quotes.
func isBare(raw string) bool {
	if raw == "" || strings.IndexByte(`"'#}`, raw[0]) >= 0 {
		return false
	}
	n, _ := bareWord(raw + ";")
	return n == len(raw) && n < tokenLimit
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
