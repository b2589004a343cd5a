package debugpage

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for given, want := range map[string]string{
		"": "", "plain <b>": "plain <b>", "a\nb": `a\nb`, "\x1b[0m": `\x1b[0m`, "\xff": `\xff`, "\u202e": `\u202e`,
		"\u00a0": `\u00a0`, "\U000e0001": `\U000e0001`, "\u65e5\u672c": "\u65e5\u672c", "\ufffd": "\ufffd",
	} {
		if got := visible(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func FuzzTexts(f *testing.F) {
	f.Add("plain")
	f.Add(strings.Repeat("\u65e5", 200))
	f.Add(strings.Repeat("\x80", 300))
	f.Fuzz(func(t *testing.T, s string) {
		c := clip(s)
		if len(c) > textLimit || clip(c) != c {
			t.Errorf("clipped to %d bytes", len(c))
		}
		if utf8.ValidString(s) && !utf8.ValidString(c) {
			t.Error("clipped in the middle of a character")
		}
		for _, r := range visible(c) {
			if !unicode.IsPrint(r) {
				t.Errorf("%U", r)
			}
		}
	})
}

func TestNumbers(t *testing.T) {
	for given, want := range map[int64]string{0: "0", -7: "\u22127", 999: "999", 1000: "1,000", -1234567: "\u22121,234,567"} {
		if got := number(given); got != want {
			t.Errorf("%d: got %q, want %q", given, got, want)
		}
	}
	for given, want := range map[time.Duration]string{-1: "0 s", 5 * time.Millisecond: "5 ms", 9900 * time.Millisecond: "9.9 s",
		70 * time.Second: "70 s", 5 * time.Minute: "5 min", 30 * time.Hour: "30 h", 99 * time.Hour: "4 days"} {
		if got := span(given); got != want {
			t.Errorf("%v: got %q, want %q", given, got, want)
		}
	}
}
