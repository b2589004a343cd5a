package balancer

import (
	"fmt"

	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leasttime"
)

// A MethodError is a method, or a binding, that nginx does not have for this use:
// ip_hash for connections, say. An upstream may be used in several ways, so New
// cannot know:
// RoundTripper's transport returns it for every request of the upstream,
// Join and DialContext return it themselves.
type MethodError struct {
	// Use is "RoundTripper" or "DialContext".
	Use string
	// Method is what does not fit, in nginx's words.
	Method string
	// Reason says what would.
	Reason string
}

func (e *MethodError) Error() string {
	return fmt.Sprintf("trunk: %s does not go with %s: %s", e.Use, e.Method, e.Reason)
}

// checkHTTP says what does not go with HTTP.
func (u *Upstream) checkHTTP() error {
	if m, ok := u.method.(leasttime.Method); ok && (m.Mode == leasttime.Connect || m.Mode == leasttime.FirstByte) {
		return &MethodError{"RoundTripper", m.String(), "HTTP has the modes header and last_byte"}
	}
	return nil
}

// checkStream says what does not go with connections (docs/parity.md, section 10).
func (u *Upstream) checkStream() error {
	const use = "DialContext"
	switch m := u.method.(type) {
	case leasttime.Method:
		if m.Mode == leasttime.Header {
			return &MethodError{use, m.String(), "connections have the modes connect, first_byte and last_byte"}
		}
	case iphash.Method:
		return &MethodError{use, m.String(), "use hash, with the client's address as Input.Key"}
	}
	if u.sticky != nil {
		return &MethodError{use, "sticky", "it is for HTTP; use hash, with Input.Key"}
	}
	return nil
}
