package balancer

import (
	"net/http"
	"strings"

	"github.com/trunklb/trunk/internal/ascii"
)

// setCookie returns the cookie of a name in the first Set-Cookie line that has it, as it
// was sent: $upstream_cookie_x. The case of the name does not matter.
func setCookie(resp *http.Response, name string) string {
	if resp == nil {
		return ""
	}
	for _, line := range resp.Header["Set-Cookie"] {
		if !ascii.HasPrefixFold(line, name) {
			continue
		}
		if v, ok := strings.CutPrefix(strings.TrimLeft(line[len(name):], " "), "="); ok {
			v, _, _ = strings.Cut(v, ";")
			return strings.TrimLeft(v, " ")
		}
	}
	return ""
}

// answerHeader returns a header of the answer: $upstream_http_x.
func answerHeader(resp *http.Response, key string) string {
	if resp == nil {
		return ""
	}
	return allLines(resp.Header, key)
}
