package balancer

import (
	"fmt"
	"log/slog"
)

// A Code names a kind of warning; it never changes.
type Code string

// A Warning is something that works, but perhaps not as intended.
type Warning struct {
	Code Code
	// Upstream is the name of the block that is meant.
	Upstream string
	// File, Line and Word say where in a text; File is empty for the text itself,
	// Line 0 and Word empty where a block as a whole, or a Config without a text,
	// is meant.
	File string
	Line int
	Word string
	// Message says what is so, Hint what to do about it.
	Message, Hint string
}

// String is "file:line: upstream "name": message (hint)", as far as each is known.
func (w Warning) String() string {
	text := w.Message
	if w.Hint != "" {
		text += " (" + w.Hint + ")"
	}
	if w.Upstream != "" {
		text = fmt.Sprintf("upstream %q: ", w.Upstream) + text
	}
	switch {
	case w.Line == 0:
		return text
	case w.File == "":
		return fmt.Sprintf("line %d: ", w.Line) + text
	}
	return fmt.Sprintf("%s:%d: ", w.File, w.Line) + text
}

// LogValue makes the warning a group of slog attributes, of what is known.
func (w Warning) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("code", string(w.Code))}
	for _, a := range []slog.Attr{slog.String("upstream", w.Upstream), slog.String("file", w.File), slog.Int("line", w.Line),
		slog.String("word", w.Word), slog.String("message", w.Message), slog.String("hint", w.Hint)} {
		if a.Value.String() != "" && a.Value.String() != "0" {
			attrs = append(attrs, a)
		}
	}
	return slog.GroupValue(attrs...)
}
