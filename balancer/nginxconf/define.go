package nginxconf

import (
	"strings"

	"github.com/trunklb/trunk/internal/conflex"
)

// define remembers the variables that a directive makes: set, map and their
// kin, and the named groups of regular expressions.
func (p *parser) define(d *conflex.Directive) {
	if p.section == nil {
		return
	}
	for i, w := range d.Words {
		if i > 0 && strings.HasPrefix(w, "$") && definesVariables(d.Name()) {
			p.section.defined[lower(w[1:])] = true
		}
		p.defineGroups(w)
	}
	if d.Name() == "map" && d.Block != nil {
		for _, line := range d.Block.Directives {
			p.defineGroups(line.Words[0])
		}
	}
}

// definesVariables reports whether a directive's arguments name new variables.
// Those of an unknown directive are taken to be new.
func definesVariables(name string) bool {
	switch name {
	case "set", "map", "geo", "split_clients", "auth_request_set", "perl_set":
		return true
	}
	return !isKnown(name)
}

// defineGroups finds (?<name>...), (?P<name>...) and (?'name'...).
func (p *parser) defineGroups(word string) {
	for {
		_, rest, found := strings.Cut(word, "(?")
		if !found {
			return
		}
		word = rest
		rest = strings.TrimPrefix(rest, "P")
		if rest == "" || rest[0] != '<' && rest[0] != '\'' {
			continue
		}
		if end := strings.IndexAny(rest[1:], ">'"); end > 0 {
			p.section.defined[lower(rest[1:1+end])] = true
		}
	}
}
