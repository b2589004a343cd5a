package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/textproto"
	"reflect"
	"time"
)

// ruling is what a failed try proves, and what may be done about it.
type ruling struct {
	kind Kind
	// own: the request is wrong in itself. No peer is blamed, and no other asked.
	own bool
	// blame: it is a failure of the peer, as far as Retry.Counts lets it be.
	blame bool
	// unsent: the peer has processed nothing of it, so that any method may go on.
	unsent bool
	// again: the connection is to blame, or nothing: the same peer may be asked once more.
	again bool
	// giveBack: it is a failure that costs no try.
	giveBack bool
}

// judge decides what a try that ended in err proves. It is the one place where that is
// decided, by what has happened to the connection; the table is in docs/parity.md,
// section 8. second says that it was the second try that the peer got for one.
func (x *exchange) judge(err error, second bool) ruling {
	if x.now == nil {
		return judgeByError(err) // the base cannot reach the peer
	}
	p := x.now.sofar()
	r := x.rule(&p, err, second)
	// To nginx any connection that breaks after it was kept is a failure that costs no try.
	r.giveBack = x.up.nginx.StaleIsFailure && r.blame && r.kind == KindError && p.reused
	return r
}

// rule is judge for a try that has come as far as p.
func (x *exchange) rule(p *progress, err error, second bool) ruling {
	s := x.now
	late := isTimeout(err)
	switch cause := context.Cause(s.Context); cause {
	case errConnectTimeout, errSendTimeout, errTryTimeout:
		late = true
	}
	switch {
	case p.asked == 0 && !p.got && (s.own || x.t.traces.Load()):
		return ruling{kind: KindError, own: true, unsent: true} // refused before there was a connection
	case p.asked == 0 && !p.got:
		r := judgeByError(err)
		if r.kind == KindError && !isNetwork(err) && err != errNothing && !x.t.traceless.Load() {
			r.own = true // a base that has shown nothing yet, and an error that is no connection's
		}
		return r
	case !p.got:
		return p.judgeConnect(err, late, s.own)
	case !p.written():
		return p.judgeUnwritten(err, late, second)
	case late:
		return ruling{kind: KindTimeout, blame: true}
	case p.repeats && p.isH2(x.end):
		// REFUSED_STREAM, or a GOAWAY that does not cover the stream.
		return ruling{kind: KindError, unsent: true, again: !second, blame: second}
	case p.waited || x.has && s.body.closedWaiting():
		return ruling{kind: KindError} // the caller was slow; the peer did not wait for it
	case p.h2:
		return x.judgeHTTP2(p, err, second)
	case p.firstByte && !p.brokeOff(err):
		return ruling{kind: p.malformed(), blame: true}
	case p.reused && !p.firstByte:
		return x.stale(second)
	}
	return ruling{kind: KindError, blame: true}
}

// judgeConnect: there was no connection. (A transport that was not ours may have failed
// before it dialled.)
func (p *progress) judgeConnect(err error, late, own bool) ruling {
	r := ruling{kind: KindError | KindConnect, unsent: true, blame: true}
	if late {
		r.kind = KindTimeout | KindConnect
	}
	switch {
	case isDial(err) || !own:
	case p.repeats:
		// It was about to take one kept-alive connection after another, each of which had closed.
		r.blame, r.again = false, true
	case !p.dials && late:
		r.blame = false // it has waited behind others, for http.Transport.MaxConnsPerHost
	case !p.dials:
		r.own = true
	case !late && p.dialled != nil && p.dialled.writes.Load() == 0 && !p.dialled.cut.Load():
		r.own = true // crypto/tls has not begun
	}
	return r
}

// judgeUnwritten: there was a connection, and the request was not written to it.
func (p *progress) judgeUnwritten(err error, late, second bool) ruling {
	cut := p.conn != nil && p.conn.cut.Load() || p.conn == nil && isNetwork(err)
	switch {
	case late:
		return ruling{kind: KindTimeout, blame: true}
	case p.refused():
	case cut && !p.reused && !p.repeats:
		// Where the connection is not ours, a long header may have been sent in part.
		return ruling{kind: KindError, unsent: p.conn != nil, blame: true}
	case p.repeats, cut, p.unwritable(), p.closedBefore(err):
		// There was no connection any more. Whichever side closed it, the next one shows
		// more, and only one that is new proves something.
		return ruling{kind: KindError, unsent: true, again: p.reused || !second, blame: second && !p.reused}
	}
	return ruling{kind: KindError, own: true, unsent: true} // the transport has refused it
}

// closedBefore reports whether the connection was closed before the request could be
// written, rather than that the transport would not write it. Over HTTP/1 the transport
// shows that it tried; over HTTP/2 a refusal leaves the connection as it is.
func (p *progress) closedBefore(err error) bool {
	switch {
	case !p.h2:
		return p.writeErr == nil
	case p.conn == nil:
		return isNetwork(err)
	}
	// net/http may be about to close it: of a peer's end over TLS there is no other sign.
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-p.conn.unreadable:
		return true
	case <-timer.C:
		return false
	}
}

// judgeHTTP2: the header was written to a connection that others may share.
func (x *exchange) judgeHTTP2(p *progress, err error, second bool) ruling {
	var stream streamError
	alone := p.conn != nil && p.alone && p.conn.taken.Load() == p.taken
	switch code, isGoAway := goAway(err); {
	case errors.As(err, &stream):
		if stream.Code == protocolError {
			// What the peer says so itself net/http would have repeated: this is
			// net/http's own verdict on the answer.
			return ruling{kind: KindInvalidHeader, blame: true}
		}
		return ruling{kind: KindError, blame: true}
	case isGoAway && ofRequest(code):
		// The peer lives, and has judged the request, or another one beside it.
		return ruling{kind: KindError, own: alone}
	case errors.Is(err, net.ErrClosed) && p.conn != nil && !p.conn.cut.Load():
		return ruling{kind: KindError, again: !second, blame: second && !p.reused} // our side has closed it
	case isGoAway, isNetwork(err):
	case isConnectionError(err):
		return ruling{kind: KindInvalidHeader, blame: true}
	case !p.reused:
		// The stream has ended, and the connection has not: a GOAWAY with an error for the
		// first stream of a connection.
		return ruling{kind: KindError}
	}
	if alone && p.reused && !p.firstByte {
		return x.stale(second)
	}
	// A broken connection counts once for all its requests.
	blame := x.up.nginx.EveryStream || p.conn == nil || !p.conn.counted.Swap(true)
	return ruling{kind: KindError, blame: blame}
}

// stale: a connection that was kept alive broke before the first byte of the answer. The
// peer may have closed it before it could read the request.
func (x *exchange) stale(second bool) ruling {
	if x.up.nginx.StaleIsFailure {
		return ruling{kind: KindError, blame: true}
	}
	return ruling{kind: KindError, again: !second} // only a new connection proves more
}

// judgeByError: the transport has shown nothing, so that its error must do.
func judgeByError(err error) ruling {
	kind := failureKind(err)
	return ruling{kind: kind, blame: true, unsent: kind&KindConnect != 0}
}

// isH2 reports whether the try was over HTTP/2. Of a connection that is not ours it may
// be known only by what the peer has answered before.
func (p *progress) isH2(e *endpoint) bool {
	return p.h2 || !p.reused || p.conn == nil && e.h2.Load()
}

// brokeOff reports whether the peer has ended an HTTP/1 connection, rather than having
// sent something that is no HTTP.
func (p *progress) brokeOff(err error) bool {
	return p.conn != nil && p.conn.cut.Load() || isNetwork(err)
}

// malformed returns the kind of an answer that is no HTTP. net/http takes the part of a line
// for a malformed one, and where the connection cannot be seen to have ended, by TLS or
// because it is not ours, it may be either.
func (p *progress) malformed() Kind {
	if p.conn == nil || p.tls {
		return KindInvalidHeader | KindError
	}
	return KindInvalidHeader
}

// isNetwork reports whether err is that of a connection: its end, or the socket's.
func isNetwork(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &op)
}

// isDial reports whether err says that no connection came about, also where a
// dialler of another's had it.
func isDial(err error) bool {
	var own *dialError
	var op *net.OpError
	return errors.As(err, &own) || errors.As(err, &op) && op.Op == "dial"
}

// streamError has the shape of net/http's HTTP/2 error for one request, as which
// that lets itself be found by errors.As.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream error" }

// protocolError is HTTP/2's PROTOCOL_ERROR.
const protocolError = 1

// goAway returns the code of an HTTP/2 GOAWAY that err stands for. net/http does not
// export the error's type, which is known by its fields.
func goAway(err error) (code uint64, is bool) {
	v := reflect.ValueOf(err)
	if v.Kind() != reflect.Struct {
		return 0, false
	}
	last, c := v.FieldByName("LastStreamID"), v.FieldByName("ErrCode")
	if !last.IsValid() || !c.IsValid() || !c.CanUint() {
		return 0, false
	}
	return c.Uint(), true
}

// ofRequest reports whether a GOAWAY's code speaks of what the client has sent:
// PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM.
func ofRequest(code uint64) bool { return code == 0x1 || code == 0x6 || code == 0x9 || code == 0xb }

// isConnectionError reports whether err is net/http's verdict that what a peer has sent
// is no HTTP/2: a number, or the size of a frame in an error of its own.
func isConnectionError(err error) bool {
	return reflect.TypeOf(err).Kind() == reflect.Uint32 || errors.Unwrap(err) != nil
}

// failureKind returns the kind of an error that is not the caller's doing.
func failureKind(err error) Kind {
	var proto textproto.ProtocolError
	switch {
	case isDial(err) && isTimeout(err):
		return KindTimeout | KindConnect
	case isDial(err):
		return KindError | KindConnect
	case isTimeout(err):
		return KindTimeout
	case errors.As(err, &proto):
		return KindInvalidHeader
	}
	return KindError
}

// statusOf returns the status that nginx notes for a failure by kind.
func statusOf(k Kind) int {
	if k&KindTimeout != 0 {
		return 504
	}
	return 502
}
