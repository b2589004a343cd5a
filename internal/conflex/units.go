package conflex

import "math"

// Number reads nginx's plain number: decimal digits, up to 2^63-1.
func Number(s string) (n int64, ok bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < '0' || c > '9' || n > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, s != ""
}

// Size reads a size in bytes, with an optional k or m.
func Size(s string) (n int64, ok bool) {
	scale := int64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			scale = 1 << 10
		case 'm', 'M':
			scale = 1 << 20
		}
	}
	if scale > 1 {
		s = s[:len(s)-1]
	}
	n, ok = Number(s)
	if !ok || n > math.MaxInt64/scale {
		return 0, false
	}
	return n * scale, true
}

// Seconds reads a time in whole seconds, such as 10, 1m30s, 1d or "1h 30m".
// Units come in falling order, a number without one is seconds and comes last.
func Seconds(s string) (n int64, ok bool) { return parseTime(s, 1) }

// Millis reads a time in milliseconds: units down to ms, but no years and
// months.
func Millis(s string) (n int64, ok bool) { return parseTime(s, 1000) }

// timeUnits are nginx's units, largest first, by their length in seconds. A
// space ends a number of seconds, and after it no unit may follow; ms is
// shorter than all of them.
var timeUnits = []struct {
	name    byte
	seconds int64
}{
	{'y', 365 * 86400}, {'M', 30 * 86400}, {'w', 7 * 86400}, {'d', 86400},
	{'h', 3600}, {'m', 60}, {'s', 1},
}

// Ranks beside the indices of timeUnits.
const (
	rankMonth  = 1
	rankSecond = 6
	rankMillis = 7
	rankSpace  = 8
)

// parseTime reads a time counted in 1/perSecond seconds.
func parseTime(s string, perSecond int64) (total int64, ok bool) {
	last := -1 // the rank of the unit before; the next must be higher
	if perSecond > 1 {
		last = rankMonth
	}
	value, digits := int64(0), false
	for i := 0; i < len(s); {
		c := s[i]
		i++
		if c >= '0' && c <= '9' {
			if value > (math.MaxInt64-int64(c-'0'))/10 {
				return 0, false
			}
			value, digits = value*10+int64(c-'0'), true
			continue
		}
		rank, scale := timeUnit(c, i < len(s) && s[i] == 's')
		if rank < 0 || rank <= last || rank == rankSpace && last >= rankSecond {
			return 0, false
		}
		last = rank
		if rank == rankMillis {
			if perSecond == 1 {
				return 0, false
			}
			i++
		} else {
			scale *= perSecond
		}
		if value > math.MaxInt64/scale || total > math.MaxInt64-value*scale {
			return 0, false
		}
		total, value = total+value*scale, 0
		for i < len(s) && s[i] == ' ' {
			i++
		}
	}
	if !digits || value > math.MaxInt64/perSecond || total > math.MaxInt64-value*perSecond {
		return 0, false
	}
	return total + value*perSecond, true
}

// timeUnit gives a unit's rank and length, in seconds but for ms; rank -1: it
// is none. s says that an "s" follows.
func timeUnit(c byte, s bool) (rank int, scale int64) {
	switch {
	case c == ' ':
		return rankSpace, 1
	case c == 'm' && s:
		return rankMillis, 1
	}
	for i, u := range timeUnits {
		if u.name == c {
			return i, u.seconds
		}
	}
	return -1, 0
}
