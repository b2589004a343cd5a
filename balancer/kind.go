package balancer

import "strings"

// Kind is a set of the reasons to pass a request on to another peer, named as
// in proxy_next_upstream.
type Kind uint16

// The kinds of proxy_next_upstream.
const (
	// KindError: the connection could not be made, or broke before the answer.
	KindError Kind = 1 << iota
	// KindTimeout: the peer took longer than its timeouts allow.
	KindTimeout
	// KindInvalidHeader: what the peer sent is no HTTP response.
	KindInvalidHeader
	KindHTTP500
	KindHTTP502
	KindHTTP503
	KindHTTP504
	KindHTTP429
	KindHTTP403
	KindHTTP404
	// KindConnect, not nginx's, is the part of KindError and KindTimeout in which no
	// connection came about: nothing was sent.
	KindConnect
	// KindBody, not nginx's, is a response body that breaks off. It is too late
	// for another peer; it can only count (Retry.Counts).
	KindBody
)

const (
	defaultOn = KindError | KindTimeout
	// alwaysCounts is what nginx counts whether or not it is passed on.
	alwaysCounts = KindError | KindTimeout | KindInvalidHeader
	statusKinds  = KindHTTP500 | KindHTTP502 | KindHTTP503 | KindHTTP504 | KindHTTP429 | KindHTTP403 | KindHTTP404
	noFailure    = KindHTTP403 | KindHTTP404
	allKinds     = KindBody<<1 - 1
)

var kindNames = [...]string{"error", "timeout", "invalid_header", "http_500", "http_502", "http_503", "http_504",
	"http_429", "http_403", "http_404", "connect", "body"}

// String returns the kinds in nginx's spelling, separated by spaces.
func (k Kind) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// MarshalText returns String's text. The error is always nil.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// statusKind returns the kind of an answer's status; 0: an answer like any other.
func statusKind(status int) Kind {
	switch status {
	case 500:
		return KindHTTP500
	case 502:
		return KindHTTP502
	case 503:
		return KindHTTP503
	case 504:
		return KindHTTP504
	case 429:
		return KindHTTP429
	case 403:
		return KindHTTP403
	case 404:
		return KindHTTP404
	}
	return 0
}

// nonIdempotent reports whether nginx sends a method again only where
// non_idempotent allows it.
func nonIdempotent(method string) bool {
	return method == "POST" || method == "LOCK" || method == "PATCH"
}
