package recording

import (
	"errors"
	"fmt"
	"strings"

	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/internal/directive"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/roundrobin"
	"github.com/trunklb/trunk/sticky"
)

// line writes a method's line in an upstream block.
func line(words []string) text {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = conflex.Quote(word)
	}
	return text(strings.Join(quoted, " "))
}

// method is the method of a recording. given is the user's, or nil.
func (h *header) method(given peer.Method) (peer.Method, error) {
	if given != nil {
		return given, nil
	}
	if h.Method != "" {
		return nil, fmt.Errorf("the method is %s: Replay must be given one", h.Method)
	}
	var method peer.Method = roundrobin.New()
	bound := h.Sticky
	for _, line := range h.Directives {
		block := conflex.Parse(string(line) + ";")
		if block.Err != nil || len(block.Directives) != 1 || len(block.Directives[0].Words) == 0 {
			return nil, fmt.Errorf("directive %q is none", string(line))
		}
		words := block.Directives[0].Words
		if words[0] == "sticky" {
			bound = true
			continue
		}
		var err error
		if method, err = directive.Method(words, h.Remedies); err != nil {
			return nil, fmt.Errorf("directive %q: %w (Replay may be given one)", string(line), err)
		}
	}
	if h.Version == 0 && bound {
		return nil, ErrNoHints
	}
	if bound {
		return sticky.Over(method), nil
	}
	return method, nil
}

// ErrNoHints is returned by Replay for nginx's recordings of sticky, which give the
// client's cookies, but not the hints that came of them.
var ErrNoHints = errors.New("the recording is of sticky and has no hints")
