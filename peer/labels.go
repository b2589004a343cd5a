package peer

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Labels are what a user notes of a server, as names with values: a version, a rack, an
// owner. They are an immutable value that compares with ==, in order of their names; the
// zero value has none. In JSON they are an object.
type Labels struct {
	// text is every name and value, each with its length before it, by name.
	text string
}

// LabelsOf returns labels of a map, which is copied.
func LabelsOf(m map[string]string) Labels {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		for _, s := range [2]string{name, m[name]} {
			b.WriteString(strconv.Itoa(len(s)))
			b.WriteByte(':')
			b.WriteString(s)
		}
	}
	return Labels{b.String()}
}

// With returns the labels with one more, or with another value of it.
func (l Labels) With(name, value string) Labels {
	m := maps.Collect(l.All())
	m[name] = value
	return LabelsOf(m)
}

// Get returns the value of a name, and whether there is one.
func (l Labels) Get(name string) (value string, ok bool) {
	for n, value := range l.All() {
		if n == name {
			return value, true
		}
	}
	return "", false
}

// All returns names and values in order of the names.
func (l Labels) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for rest := l.text; rest != ""; {
			var name, value string
			name, rest = cutLabel(rest)
			value, rest = cutLabel(rest)
			if !yield(name, value) {
				return
			}
		}
	}
}

// cutLabel takes the first text off.
func cutLabel(text string) (first, rest string) {
	length, rest, _ := strings.Cut(text, ":")
	n, _ := strconv.Atoi(length)
	return rest[:n], rest[n:]
}

// String returns the labels as "name=value", separated by spaces.
func (l Labels) String() string {
	var words []string
	for name, value := range l.All() {
		words = append(words, name+"="+value)
	}
	return strings.Join(words, " ")
}

// MarshalJSON writes the labels as an object.
func (l Labels) MarshalJSON() ([]byte, error) { return json.Marshal(maps.Collect(l.All())) }

// UnmarshalJSON reads an object of strings.
func (l *Labels) UnmarshalJSON(data []byte) error {
	var m map[string]string
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	*l = LabelsOf(m)
	return nil
}

// refusal says what is wrong with the labels; "": nothing.
func (l Labels) refusal() string {
	for name, value := range l.All() {
		switch {
		case name == "":
			return "a label needs a name"
		case !utf8.ValidString(name) || !utf8.ValidString(value):
			return fmt.Sprintf("label %q is not UTF-8", name)
		}
	}
	return ""
}
