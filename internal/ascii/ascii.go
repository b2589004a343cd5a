// Package ascii folds case as nginx does: of the letters A to Z and no others. In
// package strings "ſ" (U+017F) is an s and "K" (U+212A) a k, so that text from the wire
// would match a name that it does not match in nginx.
package ascii

// EqualFold reports whether s and t are equal but for the case of A to Z.
func EqualFold(s, t string) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range len(s) {
		if s[i] != t[i] && lower(s[i]) != lower(t[i]) {
			return false
		}
	}
	return true
}

// HasPrefixFold reports whether s begins with prefix but for the case of A to Z.
func HasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && EqualFold(s[:len(prefix)], prefix)
}

// ToLower returns s with A to Z in lower case.
func ToLower(s string) string {
	for i := range len(s) {
		if lower(s[i]) != s[i] {
			t := []byte(s)
			for j := range t {
				t[j] = lower(t[j])
			}
			return string(t)
		}
	}
	return s
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}
