package balancer

import (
	"net/http"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// binder is sticky at work on HTTP: it makes the hint of a request, before each
// get, and hears of the answer. These are its only three places in the
// request's way. Goroutines share it, and none of it runs in the upstream's lock.
type binder interface {
	// hint returns the sid of the peer that the client is bound to, or "". It
	// is asked again before each retry.
	hint(*http.Request) string
	// answered is told of the response header that the caller will get; it
	// may add a Set-Cookie.
	answered(*http.Request, *http.Response, *peer.Peer)
	// freed is told how the held peer's attempt ended. resp is nil if it did
	// not answer.
	freed(*http.Request, *http.Response, *peer.Peer, Outcome)
}

// newBinder makes the binder of a configuration; nil for none.
func newBinder(s sticky.Sticky) (binder, error) {
	if s == nil {
		return nil, nil
	}
	return nil, &ConfigError{Server: -1, Field: "Sticky", Value: s, Reason: "is not at work yet"}
}
