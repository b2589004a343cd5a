//go:build linux

package redispatch

import (
	"bytes"
	"io"
)

// Request bodies are a pattern without a short period, so that a body that is
// sent again from the wrong place, or twice, does not look right.
const patternPeriod = 251

// pattern is enough of it to compare any buffer of readSize at once: bodies of
// megabytes must not cost the time that the scenarios' margins are made of.
var pattern = func() []byte {
	p := make([]byte, patternPeriod+readSize)
	for i := range p {
		p[i] = byte(i % patternPeriod)
	}
	return p
}()

const readSize = 32 << 10

// patternAt returns n bytes of the pattern from an offset; n is at most readSize.
func patternAt(offset, n int) []byte {
	offset %= patternPeriod
	return pattern[offset : offset+n]
}

func patternBody(n int) []byte {
	body := make([]byte, 0, n)
	for len(body) < n {
		body = append(body, patternAt(len(body), min(readSize, n-len(body)))...)
	}
	return body
}

// readPattern reads r to its end. It returns how many bytes came, and whether
// they were the pattern.
func readPattern(r io.Reader) (n int, right bool, err error) {
	right = true
	buf := make([]byte, readSize)
	for {
		got, err := r.Read(buf)
		right = right && bytes.Equal(buf[:got], patternAt(n, got))
		n += got
		if err == io.EOF {
			return n, right, nil
		}
		if err != nil {
			return n, right, err
		}
	}
}
