package balancer

import (
	"net/http"
	"strings"
)

// isRefused reports whether net/http would not send a request, to whatever peer:
// its error must not be taken for one of the peer. It is asked after a failure,
// so that requests that go well do not pay for it.
func isRefused(r *http.Request) bool {
	if r.Header == nil || r.URL.Host == "" {
		return true
	}
	if s := r.URL.Scheme; s != "http" && s != "https" {
		return true
	}
	if r.Method != "" && !isToken(r.Method) {
		return true
	}
	return !validHeader(r.Header) || !validHeader(r.Trailer)
}

func validHeader(h http.Header) bool {
	for name, values := range h {
		if !isToken(name) {
			return false
		}
		for _, v := range values {
			if strings.IndexFunc(v, isControl) >= 0 {
				return false
			}
		}
	}
	return true
}

// isControl reports whether a character may not stand in a header's value.
func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// isToken reports whether s is an RFC 9110 token.
func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	}) < 0
}
