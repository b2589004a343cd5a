// Package cookie reads a request's Cookie header as nginx does. It is the one reader of
// sticky's cookie and of $cookie_NAME.
package cookie

import (
	"strings"

	"github.com/trunklb/trunk/internal/ascii"
)

// MaxHeader is how many bytes of a request's Cookie lines are read: all that nginx, as
// it is configured by default, takes of a whole request's header. The rest is
// ignored, so that a long header costs no more than this.
const MaxHeader = 32 << 10

// Find returns the value of the first cookie of that name in the lines of a Cookie
// header, as it was sent; "" if there is none. Each line is read for itself. The case of
// A to Z does not matter in names. Only a semicolon ends a cookie (nginx since 1.29.6;
// before that a comma did too), and the bare name, without an equals sign, hides the
// cookie that follows it in its line.
func Find(lines []string, name string) string {
	left := MaxHeader
	for _, line := range lines {
		line = line[:min(len(line), left)]
		left -= len(line)
		if value, found := inLine(line, name); found {
			return value
		}
	}
	return ""
}

func inLine(line, name string) (value string, found bool) {
	for line != "" {
		if ascii.HasPrefixFold(line, name) {
			line = strings.TrimLeft(line[len(name):], " ")
			if line == "" {
				return "", false
			}
			sign := line[0]
			line = line[1:] // also a semicolon, so that the next cookie is hidden
			if sign == '=' {
				value, _, _ = strings.Cut(line, ";")
				return strings.TrimLeft(value, " "), true
			}
		}
		// By hand: a header that is nothing but semicolons then costs a fifth.
		end := 0
		for end < len(line) && line[end] != ';' {
			end++
		}
		if end == len(line) {
			return "", false
		}
		for line = line[end+1:]; line != "" && line[0] == ' '; line = line[1:] {
		}
	}
	return "", false
}
