package balancer

import "fmt"

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
	return refuseUse("RoundTripper", u.method.Name, u.method.NotHTTP)
}

// checkStream says what does not go with connections (docs/parity.md, section 10).
func (u *Upstream) checkStream() error {
	const use = "DialContext"
	if err := refuseUse(use, u.method.Name, u.method.NotStream); err != nil || u.sticky == nil {
		return err
	}
	return refuseUse(use, u.sticky.of.Name, u.sticky.of.NotStream)
}

func refuseUse(use, method, reason string) error {
	if reason == "" {
		return nil
	}
	return &MethodError{use, method, reason}
}
