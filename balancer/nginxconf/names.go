package nginxconf

import "strings"

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
