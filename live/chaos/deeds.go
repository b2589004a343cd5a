package main

// A deed is what a server does with one request it has received. A protocol that does not
// have it is nil.
type deed struct {
	name string
	// innocent: a healthy peer may do it, and must not be counted for it.
	innocent bool
	// early: it does not wait for the request's body.
	early bool
	// unprocessed: the peer says, in a way that the client can know, that it has not
	// processed the request.
	unprocessed bool
	// broken: the answer's header is good, and its body breaks off.
	broken bool
	// status is that of the answer, where it is not 200.
	status int
	// rare: it costs a timeout, and is drawn seldom.
	rare bool

	h1   func(*h1Request)
	h2   func(*h2Request)
	line func(*lineRequest)
}

// answers is what servers do mostly.
var answers = &deed{name: "answers", innocent: true,
	h1: func(r *h1Request) { r.answer(200) }, h2: func(r *h2Request) { r.answer(200) }, line: (*lineRequest).answer}

var deeds = []*deed{
	answers,
	{name: "answers in pieces", innocent: true, h1: (*h1Request).pieces, h2: (*h2Request).pieces},
	{name: "answers after 103", innocent: true, h1: (*h1Request).hints, h2: (*h2Request).hints},
	saysGoodbye,
	cutsIdle,
	refusesOnce,
	impatient,

	{name: "resets", early: true, h1: (*h1Request).reset, h2: (*h2Request).reset, line: (*lineRequest).reset},
	{name: "resets after the body", h1: (*h1Request).reset, h2: (*h2Request).reset},
	{name: "cuts", h1: (*h1Request).cut, h2: (*h2Request).cut, line: (*lineRequest).cut},
	{name: "cuts early", early: true, h1: (*h1Request).cut, h2: (*h2Request).cut},
	{name: "half-closes", h1: (*h1Request).halfClose, h2: (*h2Request).halfClose, line: (*lineRequest).halfClose, rare: true},
	{name: "cuts in the status line", h1: func(r *h1Request) { r.write("HTTP/1.1 20"); r.cut() }},
	{name: "cuts in the header", h1: func(r *h1Request) { r.write("HTTP/1.1 200 OK\r\nX-Half: a"); r.cut() }, h2: (*h2Request).halfHeader},
	{name: "resets in the header", h1: func(r *h1Request) { r.write("HTTP/1.1 200 OK\r\nX-Half: a"); r.reset() }},
	{name: "cuts in the body", broken: true, h1: func(r *h1Request) { r.half(); r.cut() }, h2: func(r *h2Request) { r.half(); r.cut() }, line: func(r *lineRequest) { r.write("chaos "); r.cut() }},
	{name: "resets in the body", broken: true, h1: func(r *h1Request) { r.half(); r.reset() }, h2: func(r *h2Request) { r.half(); r.reset() }, line: func(r *lineRequest) { r.write("chaos "); r.reset() }},
	{name: "answers garbage", h1: func(r *h1Request) { r.write("GARBAGE\r\n\r\n"); r.cut() }, h2: func(r *h2Request) { r.raw("GARBAGE\r\n\r\nGARBAGE") }, line: func(r *lineRequest) { r.write("GARBAGE\n") }},
	{name: "answers with two lengths", h1: func(r *h1Request) {
		r.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
		r.cut()
	}},
	{name: "answers with a wrong status", h1: func(r *h1Request) { r.write("HTTP/1.1 xyz\r\n\r\n"); r.cut() }, h2: (*h2Request).badStatus},
	{name: "answers 429", status: 429, h1: func(r *h1Request) { r.answer(429) }, h2: func(r *h2Request) { r.answer(429) }},
	{name: "answers 503", status: 503, h1: func(r *h1Request) { r.answer(503) }, h2: func(r *h2Request) { r.answer(503) }},
	{name: "answers 504", status: 504, h1: func(r *h1Request) { r.answer(504) }, h2: func(r *h2Request) { r.answer(504) }},
	{name: "answers and goes on", h1: (*h1Request).babble, line: (*lineRequest).babble},
	{name: "drips", h1: (*h1Request).drip},
	{name: "freezes", rare: true, h1: (*h1Request).freeze, h2: (*h2Request).freeze, line: (*lineRequest).freeze},
	{name: "goes away from each", unprocessed: true, early: true, h2: (*h2Request).goAwayFromEach},
	{name: "refuses each", unprocessed: true, early: true, h2: (*h2Request).refuse},
	{name: "goes away with an error", h2: (*h2Request).goAwayWithError},
}

// saysGoodbye is Connection: close, or a graceful GOAWAY.
var saysGoodbye = &deed{name: "answers and says goodbye", innocent: true, h1: (*h1Request).goodbye, h2: (*h2Request).goodbye}

// impatient closes the connection of a caller whose body does not come.
var impatient = &deed{name: "does not wait for the body", innocent: true, early: true, h1: (*h1Request).impatient}

// cutsIdle is what each server with a keepalive_timeout does now and then, at the wrong moment.
var cutsIdle = &deed{name: "answers and cuts the idle connection", innocent: true, h1: (*h1Request).cutIdle}

// ignores is what becomes of a stream after a graceful GOAWAY. It is not drawn.
var ignores = &deed{name: "ignores after its GOAWAY", innocent: true, unprocessed: true}

// refusesOnce is never done to a request that the server has not processed before: it
// would have reason to think that the server never does.
var refusesOnce = &deed{name: "refuses once", innocent: true, early: true, unprocessed: true, h2: (*h2Request).refuse}

// speaks reports whether a protocol has the deed.
func (d *deed) speaks(p protocol) bool {
	switch p {
	case h1:
		return d.h1 != nil
	case h2:
		return d.h2 != nil
	}
	return d.line != nil
}

// deedsOf returns the innocent deeds of a protocol, or the others.
func deedsOf(p protocol, innocent bool) (of []*deed) {
	for _, d := range deeds {
		if d.speaks(p) && d.innocent == innocent {
			of = append(of, d)
		}
	}
	return of
}
