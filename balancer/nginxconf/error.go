package nginxconf

import (
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/trunklb/trunk/balancer"
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
	// or a *balancer.ConfigError for a value that nginx takes and trunk does not.
	Cause error
	// Warnings are those given before the error.
	Warnings []balancer.Warning
}

func (e *ParseError) Error() string {
	return "trunk: " + balancer.Warning{File: e.File, Line: e.Line, Message: e.Message, Hint: e.Hint}.String()
}

// LogValue makes the error a group of slog attributes.
func (e *ParseError) LogValue() slog.Value {
	v := balancer.Warning{Code: "refused", File: e.File, Line: e.Line, Word: e.Word, Message: e.Message, Hint: e.Hint}.LogValue()
	if e.Cause == nil {
		return v
	}
	return slog.GroupValue(append(v.Group(), slog.String("cause", e.Cause.Error()))...)
}

// MarshalJSON spells the cause as its text.
func (e *ParseError) MarshalJSON() ([]byte, error) {
	type plain ParseError // without its methods
	cause := ""
	if e.Cause != nil {
		cause = e.Cause.Error()
	}
	return json.Marshal(struct {
		*plain
		Cause string `json:",omitempty"`
	}{(*plain)(e), cause})
}

// Unwrap returns Cause.
func (e *ParseError) Unwrap() error { return e.Cause }

// Class is the kind of a directive or parameter that was refused or ignored.
type Class uint8

const (
	// ClassNginx is nginx's own, but has no meaning in a library (zone) or
	// none beyond what was taken (resolver).
	ClassNginx Class = iota + 1
	// ClassHarmless is another module's, and does not affect peer selection
	// while all is well (check, slow_start, queue).
	ClassHarmless
	// ClassChoice is another module's and affects peer selection (fair).
	ClassChoice
	// ClassServers says that the servers come from elsewhere (upsync, include).
	ClassServers
	// ClassOutside is a directive outside the upstream blocks that is not
	// nginx's own.
	ClassOutside
)

// String describes the class in a few words.
func (c Class) String() string {
	switch c {
	case ClassNginx:
		return "nginx's own, without effect here"
	case ClassHarmless:
		return "third-party, does not affect peer selection"
	case ClassChoice:
		return "third-party, affects peer selection"
	case ClassServers:
		return "the servers come from elsewhere"
	case ClassOutside:
		return "third-party, outside the upstream blocks"
	}
	return "none"
}

// Ignored is a directive or parameter that has no effect here.
type Ignored struct {
	// Upstream is the name of the block that contains it; empty: none does.
	Upstream string
	// File and Line say where, as in ParseError.
	File string
	Line int
	// Words are the directive, or the one parameter that was ignored.
	Words []string
	Class Class
	// Instead says what it was for, and what to use here.
	Instead string
}

// String is one line: where, what, and what to use instead.
func (i Ignored) String() string {
	return balancer.Warning{Upstream: i.Upstream, File: i.File, Line: i.Line, Message: oneLine(i.Words), Hint: i.Instead}.String()
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
