// Package spell writes values in the words of an nginx directive.
package spell

import (
	"math"
	"strconv"
	"time"
)

// MinZone is the least size of a shared memory zone in bytes: eight pages.
const MinZone = 8 * 4096

// Seconds writes a time in nginx's whole seconds; the longest time there is
// comes back as itself.
func Seconds(d time.Duration) string {
	if d == math.MaxInt64 {
		return strconv.FormatInt(math.MaxInt64/int64(time.Second)+1, 10) + "s"
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// Millis writes a time in milliseconds, or in seconds where they are whole.
func Millis(d time.Duration) string {
	if d%time.Second == 0 {
		return Seconds(d)
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + "ms"
}
