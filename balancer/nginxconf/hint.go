package nginxconf

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trunklb/trunk/internal/conflex"
)

// Hints say what would be right. They guess at what was meant, by the mistakes
// that people make; a text that is refused for another reason has none.

// hintSyntax is for a text that is not nginx's language.
func hintSyntax(e *conflex.SyntaxError) string {
	last := ""
	if len(e.Words) > 0 {
		last = e.Words[len(e.Words)-1]
	}
	switch {
	case strings.HasSuffix(last, "；"):
		return "the semicolon is a full-width one, U+FF1B: write ;"
	case e.Message == `unexpected end of file, expecting "}"` && len(e.Words) > 0:
		return fmt.Sprintf("the block %s { of line %d is not closed", short(e.Words), e.Start)
	case strings.HasPrefix(e.Message, "unexpected end of file") && len(e.Words) > 0:
		return fmt.Sprintf("the directive %s of line %d is not ended: a ; or a closing quote is missing", short(e.Words), e.Start)
	case e.Message == `unexpected "}"` && len(e.Words) > 0:
		return fmt.Sprintf("the ; behind %s is missing", short(e.Words))
	case e.Message == `unexpected "}"`:
		return "there is one closing brace too many"
	case e.Message == `unexpected ";"`:
		return "there is one semicolon too many: none follows } or another ;"
	case e.Message == `unexpected "{"`:
		return "a block needs a name before its brace; template braces such as {{ }} or {% %} must be filled in first"
	case strings.HasPrefix(e.Message, "too long parameter"):
		return "a closing quote or a ; is missing"
	case strings.HasPrefix(e.Message, "unexpected"):
		return "a quote ends the word: put the quotes around the whole word"
	}
	return ""
}

// hintUnterminated is for { where ; is right.
func hintUnterminated(d *conflex.Directive) string {
	if opensTemplate(d) {
		return hintTemplate
	}
	if len(d.Words) > 2 || d.Start < d.Line {
		return fmt.Sprintf("the directive begins in line %d: is its ; missing?", d.Start)
	}
	return "it takes no block: end it with ;"
}

// hintNoBrace is for a block directive that ended without a block.
func hintNoBrace(d *conflex.Directive) string {
	switch d.Name() {
	case "server":
		return "server lines belong inside upstream NAME { }"
	case "upstream":
		return "write upstream NAME { server ADDRESS; }"
	}
	return "its { is missing"
}

// hintNotHere is for a directive in the wrong place.
func hintNotHere(d *conflex.Directive, where place) string {
	ofUpstreams := isOfUpstreams(d.Name())
	switch {
	case where == inStreamUpstream && ofUpstreams:
		return "it is for upstreams in http { } only"
	case where == inUpstream || where == inStreamUpstream:
		return "an upstream block holds servers and the method: is its closing brace missing?"
	case d.Name() == "upstream":
		return "upstream blocks belong in http { } or stream { }, not in a server or location"
	case ofUpstreams:
		return "it belongs inside upstream NAME { }"
	case d.Name() == "location":
		return "a location belongs inside server { }: put one around it, or paste the upstream blocks alone"
	}
	return ""
}

func isOfUpstreams(name string) bool {
	c, _ := find(name, inUpstream)
	return c != nil
}

// hintUnknown is for an unknown directive.
func hintUnknown(d *conflex.Directive) string {
	name := d.Name()
	switch {
	case strings.HasPrefix(name, "//") || strings.HasPrefix(name, "/*") || strings.HasPrefix(name, "--"):
		return "comments begin with #"
	case isTemplate(name):
		return hintTemplate
	case invisible(name) != "":
		return invisible(name)
	case name == "round_robin" || name == "roundrobin" || name == "rr" || name == "wrr":
		return "round robin is what a block without a method does: leave the line out"
	case isKnown(lower(name)) && lower(name) != name:
		return "directives are lower case: " + lower(name)
	case valueHint(name) != "":
		return fmt.Sprintf("%s is a parameter of server: %s", name, valueHint(name))
	case strings.Contains(name, "="):
		return "it looks like a parameter: is there a ; too early?"
	case looksLikeAddr(name):
		return "is the word server missing in front of it?"
	case d.Block != nil && looksLikeUpstream(d):
		return "is it an upstream block? Write upstream NAME { }"
	}
	for _, known := range []string{"least_conn", "ip_hash", "least_time", "hash", "random", "sticky", "server",
		"keepalive", "zone", "upstream", "resolver", "include"} {
		if near(name, known) {
			return "did you mean " + known + "?"
		}
	}
	if meant := misspelt(name); meant != "" {
		return "did you mean " + meant + "?"
	}
	if t, ok := foreignOf(name); ok {
		return t.instead
	}
	return ""
}

// hintCount is for the wrong number of words.
func hintCount(d *conflex.Directive) string {
	switch name := d.Name(); {
	case opensTemplate(d) || isTemplate(strings.Join(d.Words, " ")):
		return hintTemplate
	case d.Start < d.Line:
		return fmt.Sprintf("the directive begins in line %d: is its ; missing?", d.Start)
	case len(d.Words) > 2 && isUnit(d.Words[len(d.Words)-1]):
		return hintUnit(d, d.Words[len(d.Words)-1])
	case name == "upstream":
		return "write upstream NAME { }; quotes go around a name with spaces"
	case name == "hash":
		return `write hash KEY [consistent]; quotes go around a key with spaces`
	case name == "sticky":
		return usageSticky
	}
	return ""
}

const usageSticky = "write sticky cookie NAME, sticky route $VARIABLE, or sticky learn create=... lookup=... zone=..."

// valueHints say what the parameters of a server line are.
var valueHints = []struct{ name, hint string }{
	{"weight", "write weight=N with a whole number from 1"},
	{"max_conns", "write max_conns=N with a whole number; 0: no limit"},
	{"max_fails", "write max_fails=N with a whole number; 0: the server is never taken out"},
	{"fail_timeout", "write fail_timeout=TIME in whole seconds, such as 30s or 1m30s"},
	{"backup", "write backup, in lower case and without a value"},
	{"down", "write down, in lower case and without a value"},
	{"drain", "write drain, in lower case and without a value"},
	{"resolve", "write resolve, in lower case and without a value"},
}

func valueHint(name string) string {
	for _, v := range valueHints {
		if v.name == name {
			return v.hint
		}
	}
	return ""
}

// hintParameter is for a parameter that is not taken.
func hintParameter(d *conflex.Directive, word string) string {
	name, value, hasValue := strings.Cut(word, "=")
	plain, _, _ := strings.Cut(strings.Trim(lower(name), ",;"), ":")
	switch {
	case d.Start < d.Line && isOfUpstreams(word):
		return fmt.Sprintf("the directive begins in line %d: is its ; missing?", d.Start)
	case isUnit(word):
		return hintUnit(d, word)
	case isTemplate(word) || strings.Contains(value, "$"):
		return "parameters take no variables and no templates: write the value itself"
	case strings.ContainsAny(word, `"'`):
		return `quotes go around the whole word: "weight=5", not weight="5"`
	case strings.Contains(word, ","):
		return "parameters are separated by spaces, without commas"
	case valueHint(name) != "" && (value == "" || !hasValue) && hasNext(d, word):
		return "write NAME=VALUE without spaces, such as weight=5"
	case valueHint(name) != "":
		return valueHint(name)
	case word == "=" || strings.HasPrefix(word, "="):
		return "write NAME=VALUE without spaces, such as weight=5"
	case valueHint(plain) != "":
		return valueHint(plain)
	case looksLikeAddr(word):
		return "one server line has one address: write a line for each"
	}
	for _, v := range valueHints {
		if near(plain, v.name) {
			return "did you mean " + v.name + "?"
		}
	}
	return invisible(word)
}

// isUnit reports whether a word is the unit of a time or size alone.
func isUnit(word string) bool {
	switch word {
	case "ms", "s", "m", "h", "d", "w", "M", "y", "k", "K":
		return true
	}
	return false
}

// hintUnit is for a unit that a space parts from its number.
func hintUnit(d *conflex.Directive, unit string) string {
	before := d.Words[max(0, slices.Index(d.Words, unit)-1)]
	return "a number and its unit are one word: write " + before + unit
}

// hasNext reports whether a word follows the given one.
func hasNext(d *conflex.Directive, word string) bool { return d.Words[len(d.Words)-1] != word }

// hintSticky is for a word that sticky does not take.
func hintSticky(word string) string {
	switch lower(word) {
	case "cookie", "route", "learn", "httponly", "secure":
		return "write it in lower case"
	}
	return usageSticky
}

// hintAddr is for an address that is not taken.
func hintAddr(d *conflex.Directive, text string) string {
	host, path, hasPath := strings.Cut(text, "/")
	switch {
	case d.Name() != "server":
		return ""
	case strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://"):
		return "a server has no scheme: write " + strings.TrimSuffix(text[strings.Index(text, "//")+2:], "/") +
			"; whether it is https is said where requests are sent"
	case isTemplate(text):
		return hintTemplate
	case strings.Contains(text, "$"):
		return "nginx knows no variables here: write the address, or a name"
	case hasPath && path == "" || hasPath && !strings.Contains(host, "]"):
		return "a server has no path: write " + host
	case strings.Count(text, ":") > 1 && !strings.Contains(text, "["):
		return "an IPv6 address is written in brackets: [" + strings.TrimSuffix(text, "]") + "]"
	case strings.Contains(text, "%"):
		return "nginx knows no IPv6 zones"
	case strings.Contains(text, "@"):
		return "a server has no user name"
	}
	return invisible(text)
}

const hintTemplate = "this is a template: fill it in first"

// opensTemplate reports whether a directive ends with the {{ of a template.
func opensTemplate(d *conflex.Directive) bool {
	return d.Block != nil && len(d.Block.Directives) == 0 && d.Block.Err != nil && d.Block.Err.Message == `unexpected "{"`
}

// isTemplate reports whether a text has the marks of a template language.
func isTemplate(s string) bool {
	for _, mark := range []string{"{{", "{%", "<%", "%>", "%}", "}}", "${"} {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return false
}

// invisible names an invisible character that is part of the word.
func invisible(s string) string {
	for _, r := range s {
		switch {
		case r == '\ufeff':
			return "there is a byte order mark, U+FEFF: save the file without it"
		case r != utf8.RuneError && r > ' ' && unicode.IsPrint(r):
		default:
			return fmt.Sprintf("there is an invisible character, %U, that nginx takes for a part of the word", r)
		}
	}
	return ""
}

// looksLikeAddr reports whether a word begins like an address with a port.
func looksLikeAddr(s string) bool {
	a, refusal := conflex.ParseAddr(s, 80)
	return refusal == "" && (a.IP.IsValid() && !a.Numeric || a.IsName() && !a.NoPort)
}

// short is the beginning of a directive, for messages.
func short(words []string) string {
	s := strings.Join(words, " ")
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return s
}

// near reports whether two words are the same but for case, signs, and one or
// two letters.
func near(a, b string) bool {
	a, b = squeeze(a), squeeze(b)
	if a == b {
		return true
	}
	if len(b) < 5 || len(a) > len(b)+2 || len(b) > len(a)+2 {
		return false
	}
	return distance(a, b) <= 2
}

// squeeze leaves only letters and digits, in lower case.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, lower(s))
}

// distance is the number of letters to put in, take out or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
