// Package recording writes down what is asked of an upstream, and plays it back
// on a fresh one: every pick and every state must be the same. So a recording
// from production is a test case, and [Replay] says of each get why it came out
// as it did.
//
//	up, err := balancer.New(ctx, balancer.Config{Name: "backend", Servers: servers, Record: file})
//	...
//	err = up.Close() // why the recording has ended early, if it has
//
//	result, err := recording.Replay(file, nil, nil)
//
// Who uses package peer alone gives a [Writer] to peer.Options.Record. A recording
// holds what clients sent: keys, addresses and session ids. It can be given away
// where these are redacted ([WriterOptions]), and still be replayed, where they
// decide nothing.
//
// # The format
//
// It is that of the recordings of nginx in internal/parity/testdata/traces, with
// additions; [Replay] reads both. A recording is one JSON object, and a file may
// hold several. It is written progressively: the first line has all fields but
// the last, which is the array "ops"; then each operation has a line; the last
// line closes array and object. If that is missing, since the process ended
// before, the recording is good up to its last whole operation.
//
// All strings that come from users (names, keys, hints) spell each byte as the
// character of that code point.
//
// The fields of the object:
//
//	version       2; 1 is still read; nginx's recordings have none
//	name, note    for the reader
//	redacted      true: texts were replaced as the recording was written
//	directives    the method as in an upstream block; none: round robin
//	remedies      fields of the method that nginx has no words for, by Go's names
//	method        the name of a method that nginx does not have; see [Replay]
//	sticky        true: the method has a binding over it, and hints count
//	policy        the fields of peer.Policy that are set, durations in ns
//	resolution    of the clock, in ns; absent: a second
//	servers       the peers in list order, see below
//	start_draws   the random numbers that RandomStart took; absent: no RandomStart
//	changed       the state after it; see below
//	ops           the operations
//	end           why the recording ended before it was closed
//
// A server has "group" (0 primary, 1 backup), "name" (address), "server" (name),
// "weight", "max_conns", "max_fails", "fail_timeout" (seconds; "fail_timeout_ns":
// the rest), "down", "drain", "sid", "resolve", "service", and since version 2 "tls_name",
// "host", "zone", "slow_start" (ns), "labels" (an object). Zeros are nginx's own.
//
// An operation has "op" and, but for the first and last of this list, the "id" of its
// request:
//
//	time      the clock says "at", in RFC 3339; up to version 1 it was "ms" since the Unix
//	          epoch ("sec": in seconds; "ns": the rest)
//	req       a request begins; "tries_cap" is its MaxTries. "over": that request's
//	          memory is taken over, so it is over
//	get       a peer is asked for: "peer" [group, index], or null: none
//	notify    "what" has come, connect or first_byte, "ms" after the get
//	header    the response header has come, "header_time" ms after the get
//	next      the attempt is over, "state" FAILED or NEXT, and the peer "freed"
//	fin       likewise; OK, or ABANDONED, which nginx does not have.
//	          "response_time" ms after the get
//	update    "servers" from now on
//
// Any operation of a request may have "key", "ip" (of the client; "unix:": none; any
// text, if redacted), "hint",
// "stream" and "backup_try", as of then; what is not given is as it was at the operation
// before, or nothing. "gave_back" is how many tries were given back since that; "tries"
// how many are left afterwards; "draws" the random numbers that it took.
//
// "changed" has each peer that the operation changed, by "group/index", with the
// fields that are not as before, by nginx's names: cw, ew, conns, fails, accessed,
// checked, header_time, response_time, connect_time, inflight_time, inflight_last,
// inflight_changed, inflight_reqs (peer.State). A new peer is all zero, but for
// its ew, which is its weight; in an update, and at the start, all peers count as
// new. Removed peers are omitted.
package recording
