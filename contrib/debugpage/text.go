package debugpage

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// textLimit bounds every text that is kept or shown, in bytes.
const textLimit = 256

const ellipsis = "…"

// clip returns at most textLimit bytes of s, whole characters, in memory that holds
// no more than that. What it has clipped it leaves as it is.
func clip(s string) string {
	if len(s) <= textLimit {
		return s
	}
	n := textLimit - len(ellipsis)
	for n > textLimit-len(ellipsis)-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

// visible returns s with everything escaped that does not show, or that changes how
// the rest shows: control characters, marks of direction, bytes that are no text.
func visible(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteString(s[:n])
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// redacted returns what may be shown of a value.
func (o *Options) redacted(kind Kind, value string) string {
	if value == "" {
		return ""
	}
	return clip(o.Redact(kind, clip(value)))
}

// shown is what is shown of a value.
func (o *Options) shown(kind Kind, value string) string { return visible(o.redacted(kind, value)) }

// clock is a time as the time of the day, in UTC.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// instant is the same for machines.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// span is a duration as one says it: two places are enough.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

// number groups the digits of an integer, with a real minus.
func number(n any) string {
	s, sign := fmt.Sprint(n), ""
	if s[0] == '-' {
		sign, s = "\u2212", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// bar is a share of 1 as a length in a bar of 100.
func bar(share float64) string { return strconv.FormatFloat(100*min(share, 1), 'f', 2, 64) }

// percent is a share of 1.
func percent(share float64) string { return fmt.Sprintf("%.1f\u202f%%", 100*share) }
