package balancer

import (
	"fmt"
	"strings"
)

// A ParseError says why a text was refused. Message is nginx's own wording
// wherever nginx refuses too.
type ParseError struct {
	// File is the included file, empty for the text itself. Line is the line
	// that nginx names, which is where the directive ends; 0: the message
	// belongs to no line.
	File string
	Line int
	// Word is the word that is refused.
	Word string
	// Message says what is wrong, Hint what would be right.
	Message, Hint string
	// Class is set where something that is not nginx's own was refused; an
	// option may allow it.
	Class Class
	// Cause is the error beneath, if there is one: an include's, a look-up's,
	// or a *peer.ConfigError for a value that nginx takes and trunk does not.
	Cause error
	// Warnings are those given before the error.
	Warnings []Warning
}

func (e *ParseError) Error() string {
	return "trunk: " + place(e.File, e.Line) + describe(e.Message, e.Hint)
}

func (e *ParseError) Unwrap() error { return e.Cause }

// A Code names a kind of warning; it never changes.
type Code string

// A Warning is something that works, but perhaps not as intended.
type Warning struct {
	Code Code
	// Upstream is the name of the block that is meant.
	Upstream string
	// File, Line and Word say where, as in ParseError; Line is 0 and Word
	// empty where a block as a whole is meant.
	File string
	Line int
	Word string
	// Message says what is so, Hint what to do about it.
	Message, Hint string
}

func (w Warning) String() string {
	return place(w.File, w.Line) + inUpstream(w.Upstream) + describe(w.Message, w.Hint)
}

// Class is the kind of a directive or parameter that was refused or passed over.
type Class uint8

const (
	// ClassNginx is nginx's own, but has no meaning in a library (zone) or
	// none beyond what was taken (resolver).
	ClassNginx Class = iota + 1
	// ClassHarmless is another module's, without influence on who is chosen
	// while all is well (check, slow_start, queue).
	ClassHarmless
	// ClassChoice is another module's and changes who is chosen (fair).
	ClassChoice
	// ClassServers says that the servers come from elsewhere (upsync, include).
	ClassServers
	// ClassOutside is a directive outside the upstream blocks that is not
	// nginx's own.
	ClassOutside
)

func (c Class) String() string {
	switch c {
	case ClassNginx:
		return "nginx's own, without effect here"
	case ClassHarmless:
		return "another module's, without influence on the choice"
	case ClassChoice:
		return "another module's, changes who is chosen"
	case ClassServers:
		return "the servers come from elsewhere"
	case ClassOutside:
		return "another module's, outside the upstream blocks"
	}
	return "none"
}

// PassedOver is a directive or parameter that has no effect.
type PassedOver struct {
	// Upstream is the name of the block that it stands in; empty: in none.
	Upstream string
	// File and Line say where, as in ParseError.
	File string
	Line int
	// Words are the directive, or the one parameter that was passed over.
	Words []string
	Class Class
	// Instead says what it was for, and what to use here.
	Instead string
}

func (p PassedOver) String() string {
	return place(p.File, p.Line) + inUpstream(p.Upstream) + describe(oneLine(p.Words), p.Instead)
}

func place(file string, line int) string {
	switch {
	case line == 0:
		return ""
	case file == "":
		return fmt.Sprintf("line %d: ", line)
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

func inUpstream(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("upstream %q: ", name)
}

// oneLine shows words without line breaks.
func oneLine(words []string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.Join(words, " "))
}

func describe(message, hint string) string {
	if hint == "" {
		return message
	}
	return message + " (" + hint + ")"
}
