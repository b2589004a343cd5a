package conflex

import (
	"fmt"
	"strings"
)

// Variables returns the names of the variables in a text such as
// "$host${uri}x", lower-case as nginx keeps them, in order. $1 to $9 are
// captures of a regular expression and no variables. The error is nginx's.
func Variables(text string) (names []string, err error) {
	for {
		_, rest, found := strings.Cut(text, "$")
		if !found {
			return names, nil
		}
		if rest != "" && rest[0] >= '1' && rest[0] <= '9' {
			text = rest[1:]
			continue
		}
		braced := strings.HasPrefix(rest, "{")
		if braced {
			rest = rest[1:]
		}
		n := 0
		for n < len(rest) && isNameByte(rest[n]) {
			n++
		}
		name := rest[:n]
		switch {
		case braced && rest == "":
			return names, fmt.Errorf("invalid variable name")
		case braced && (n == len(rest) || rest[n] != '}'):
			return names, fmt.Errorf(`the closing bracket in "%s" variable is missing`, name)
		case n == 0:
			return names, fmt.Errorf("invalid variable name")
		case braced:
			n++
		}
		names, text = append(names, strings.ToLower(name)), rest[n:]
	}
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
