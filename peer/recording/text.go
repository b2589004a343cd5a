package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// text is bytes, each of them spelt as the character of that code point.
type text string

// MarshalJSON writes each byte as a character.
func (t text) MarshalJSON() ([]byte, error) { return appendText(nil, string(t)), nil }

// UnmarshalJSON turns the characters back into bytes.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	raw := make([]byte, 0, len(s))
	for _, c := range s {
		if c > 0xff {
			return fmt.Errorf("character %U in a string of bytes", c)
		}
		raw = append(raw, byte(c))
	}
	*t = text(raw)
	return nil
}

// appendText appends s in quotes.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c >= 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// compact is json.Marshal without escapes for HTML.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// strictly reads a value in which every field is known: one that is not might be
// an expectation that would go unchecked.
func strictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
