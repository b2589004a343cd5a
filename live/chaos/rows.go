package main

// A row is one reason why a call may go without a good answer, or a healthy peer be counted,
// although trunk does what it should. The list is closed: what has no row is a fault.
type row struct {
	class    string // inherent, documented, or machine
	name     string
	sentence string
}

var (
	brokeOff    = &row{"inherent", "the body broke off", "parity.md, section 8: a response body that breaks off is too late for another peer (KindBody)"}
	connBroke   = &row{"inherent", "the connection broke", "DialContext: the context is for connecting only; later errors say nothing about a TCP peer"}
	callerGone  = &row{"documented", "the caller went away", "parity.md, what differs, 1: a client that goes away before the response header: Abandoned"}
	wrongItself = &row{"documented", "the request is wrong", "RoundTripper: errors are of type *Error, except where the request itself is wrong: no peer is blamed"}
	ownAnswer   = &row{"documented", "the peer's own answer", "parity.md, section 8: a status counts only if it is listed and passed on; else the answer goes to the client"}
	notListed   = &row{"documented", "the failure is not passed on", "parity.md, section 8: error and timeout go on to the next peer by default, other kinds where listed; Off: none"}
	outOfTries  = &row{"documented", "no tries left", "parity.md, section 8: tries: all peers that are not down, lowered by next_upstream_tries"}
	sentOnce    = &row{"documented", "POST, PATCH once sent", "parity.md, section 8: POST, LOCK, PATCH do not go on once sent, but with non_idempotent"}
	bodySent    = &row{"documented", "the body was sent", "parity.md, section 8: nor does a request go on whose body was sent and cannot be sent again"}
	staleConn   = &row{"documented", "dead kept-alive connection", "NginxParity; parity.md, what differs, 3: a kept-alive connection that turns out dead is a failure of the peer, and gives the try back"}
	stoodStill  = &row{"machine", "the machine stood still", "the harness: for longer than half a timeout nothing ran, so that a timeout says nothing"}
)

var rows = []*row{brokeOff, connBroke, callerGone, wrongItself, ownAnswer, notListed, outOfTries, sentOnce, bodySent, staleConn, stoodStill}
