package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/roundrobin"
	"github.com/trunklb/trunk/sticky"
)

// directive is the method's line in an upstream block; "": round robin. known is
// false for a method that is not trunk's.
func directive(m peer.Method) (line string, known bool) {
	words := []string{}
	switch m := m.(type) {
	case nil, roundrobin.Method:
		return "", true
	case leastconn.Method:
		words = append(words, "least_conn")
	case leasttime.Method:
		words = append(words, "least_time", m.Mode.String())
		if m.Inflight {
			words = append(words, "inflight")
		}
	case hash.Method:
		words = append(words, "hash", conflex.Quote(m.Key))
		if m.Consistent {
			words = append(words, "consistent")
		}
	case iphash.Method:
		words = append(words, "ip_hash")
	case random.Method:
		words = append(words, "random")
		if m.Two {
			words = append(words, "two")
		}
	default:
		return "", false
	}
	return strings.Join(words, " "), true
}

// method is the method of a recording. given is the user's, or nil.
func (h *header) method(given peer.Method) (peer.Method, error) {
	if given != nil {
		return given, nil
	}
	if h.Method != "" {
		return nil, fmt.Errorf("the method is a %s: Options.Method must be one", h.Method)
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
		if method, err = methodOf(words, h.Remedies); err != nil {
			return nil, fmt.Errorf("directive %q: %w", string(line), err)
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

var modes = map[string]leasttime.Mode{
	"header": leasttime.Header, "last_byte": leasttime.LastByte,
	"connect": leasttime.Connect, "first_byte": leasttime.FirstByte,
}

// methodOf reads a method's line.
func methodOf(words []string, remedies json.RawMessage) (peer.Method, error) {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "least_conn":
		return remedied(leastconn.New(), remedies)
	case "least_time":
		mode, ok := modes[arg(1)]
		if !ok {
			return nil, fmt.Errorf("no mode %q", arg(1))
		}
		return remedied(leasttime.Method{Mode: mode, Inflight: arg(2) == "inflight"}, remedies)
	case "hash":
		return remedied(hash.Method{Key: arg(1), Consistent: arg(2) == "consistent"}, remedies)
	case "ip_hash":
		return remedied(iphash.New(), remedies)
	case "random":
		return remedied(random.Method{Two: arg(1) == "two"}, remedies)
	}
	return nil, errors.New("no such method")
}

// remedied is the method with the fields that nginx has no words for.
func remedied[M peer.Method](m M, remedies json.RawMessage) (peer.Method, error) {
	if len(remedies) == 0 {
		return m, nil
	}
	err := strictly(remedies, &m)
	return m, err
}
