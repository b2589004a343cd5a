package balancer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// outgoing is the caller's request body, over all tries. It sees to it that the
// body is closed exactly once, and says whether it can be sent (again).
type outgoing struct {
	r *http.Request
	// now is the present try's body; nil before the first.
	now *outBody
	// tape remembers the caller's body while it is read; nil: it does not.
	tape *tape
	// whole is the caller's body, read before the first try; nil: it was not.
	whole []byte
	limit int64
}

func (o *outgoing) reset(r *http.Request, limit int64) {
	*o = outgoing{r: r, limit: limit}
	if r.GetBody == nil && limit > 0 {
		o.tape = &tape{body: r.Body, limit: limit}
	}
}

// readFirst reads the body before the first try, up to the limit. What is longer
// is sent as it comes, and not again. The context's end closes the body, and
// so ends the reading.
func (o *outgoing) readFirst(ctx context.Context) error {
	tape := o.tape
	stop := context.AfterFunc(ctx, func() { tape.close() })
	defer stop()
	buf := make([]byte, 0, max(512, min(o.limit, o.r.ContentLength)+1))
	for int64(len(buf)) <= o.limit {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := o.r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case ctx.Err() != nil:
			return &BodyError{context.Cause(ctx)}
		case err == io.EOF:
			tape.close()
			o.whole, o.tape = buf, nil
			return nil
		case err != nil:
			return &BodyError{err}
		}
	}
	tape.buf, tape.lost = buf, true
	return nil
}

// next sets up b as the body of another try. retry may be called first to learn
// whether there is one. An error is that of GetBody, or of a body that is gone.
func (o *outgoing) next(b *outBody) error {
	last := o.now
	switch {
	case o.whole != nil:
		b.body = io.NopCloser(bytes.NewReader(o.whole))
	case o.tape != nil && o.tape.rewinds():
		b.body = o.tape.cursor()
	case last == nil && o.tape != nil:
		b.body = o.tape.cursor()
	case last == nil:
		b.body = o.r.Body
	default:
		if body := last.moveOn(); body != nil {
			b.body = body
			break
		}
		if o.r.GetBody == nil {
			return errBodyGone
		}
		last.end()
		body, err := o.r.GetBody()
		if err == nil && body == nil {
			err = errNoBody
		}
		if err != nil {
			return &BodyError{err}
		}
		b.body = body
	}
	b.length = -1
	if o.r.ContentLength > 0 {
		b.length = o.r.ContentLength
	}
	o.now = b
	return nil
}

var errNoBody = errors.New("GetBody returned nil")

var errBodyGone = &BodyError{http.ErrBodyReadAfterClose}

// again reports whether there can be another try.
func (o *outgoing) again() bool {
	return o.now == nil || o.whole != nil || o.r.GetBody != nil || o.tape != nil && o.tape.rewinds() || !o.now.wasRead()
}

// answered says that there will be no further try: the transport may still be
// reading, and its Close is the caller's body's from now on.
func (o *outgoing) answered() {
	if o.now != nil {
		o.now.last()
	}
}

// close says that there will be no further try, and that there is no use for
// the body any more.
func (o *outgoing) close() {
	switch {
	case o.tape != nil:
		o.tape.end()
	case o.now != nil:
		o.now.end()
	case o.whole == nil:
		o.r.Body.Close()
	}
}

// outBody is a request's body for one try. The transport's goroutines may hold it
// longer than the try lasts: after it has moved on or ended, they read an error.
type outBody struct {
	mu      sync.Mutex
	body    io.ReadCloser // nil once it was moved on or closed
	length  int64         // announced; -1: not
	n       int64         // delivered
	err     error         // of the caller's body, io.EOF too
	reading bool
	read    bool // data was asked for
	closed  bool // by the transport
	final   bool // the transport's Close is the body's
	ended   bool // to be closed as soon as no read is under way
	cutOff  bool // the transport closed it while it read

	// watch is called when a reading begins, and when it ends. nil: not.
	watch func(begins bool)
}

// Read implements io.Reader.
func (b *outBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.body == nil || b.closed || b.ended {
		b.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	body := b.body
	b.read, b.reading = true, true
	b.mu.Unlock()

	if b.watch != nil {
		b.watch(true)
	}
	n, err := body.Read(p)
	if b.watch != nil {
		b.watch(false)
	}

	b.mu.Lock()
	b.reading = false
	b.n += int64(n)
	if err != nil {
		b.err = err
	}
	if b.ended {
		body = b.take()
	} else {
		body = nil
	}
	b.mu.Unlock()
	if body != nil {
		body.Close()
	}
	return n, err
}

// Close implements io.Closer. The caller's body is spared as long as another try
// may want it.
func (b *outBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.cutOff = b.cutOff || b.reading
	var body io.ReadCloser
	if b.final || b.ended {
		body = b.take()
	}
	b.mu.Unlock()
	if body != nil {
		return body.Close()
	}
	return nil
}

// take returns the body for one caller to close or use, once; then nil. Under the lock.
func (b *outBody) take() io.ReadCloser {
	body := b.body
	b.body = nil
	return body
}

// moveOn returns the body for another try, if no data was asked of it; else nil.
func (b *outBody) moveOn() io.ReadCloser {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read {
		return nil
	}
	return b.take()
}

func (b *outBody) wasRead() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read
}

// isReading reports whether the transport waits for data.
func (b *outBody) isReading() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reading
}

// closedWaiting reports whether the transport gave the body up while it waited for data.
func (b *outBody) closedWaiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cutOff
}

// last lets the transport's Close through, also one that has come already.
func (b *outBody) last() {
	b.mu.Lock()
	b.final = true
	var body io.ReadCloser
	if b.closed {
		body = b.take()
	}
	b.mu.Unlock()
	if body != nil {
		body.Close()
	}
}

// end closes the body, as soon as no read is under way.
func (b *outBody) end() {
	b.mu.Lock()
	b.ended = true
	var body io.ReadCloser
	if !b.reading {
		body = b.take()
	}
	b.mu.Unlock()
	if body != nil {
		body.Close()
	}
}

// fault returns what the caller's body did wrong: an error, or another length
// than was announced. nil: nothing.
func (b *outBody) fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil && b.err != io.EOF:
		return &BodyError{b.err}
	case b.length >= 0 && (b.n > b.length || b.err == io.EOF && b.n != b.length):
		return &BodyError{errBodyLength}
	}
	return nil
}

var errBodyLength = io.ErrUnexpectedEOF

// tape remembers the caller's body while it is read, so that another try can
// begin again, while the reading goes on where it was. Goroutines may share it.
type tape struct {
	reading sync.Mutex // held while the caller's body is read
	body    io.ReadCloser
	limit   int64

	mu     sync.Mutex
	buf    []byte
	err    error
	lost   bool // what was read is no longer all in buf
	latest *cursor
	ended  bool // to be closed as soon as no read is under way
	closed bool
}

// rewinds reports whether a cursor from the beginning is possible.
func (t *tape) rewinds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.lost
}

// cursor returns the body from its beginning, for the next try. Those from
// before get nothing any more.
func (t *tape) cursor() io.ReadCloser {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latest = &cursor{t: t}
	return t.latest
}

// end closes the caller's body, as soon as no read is under way.
func (t *tape) end() {
	t.mu.Lock()
	t.ended, t.latest = true, nil
	t.mu.Unlock()
	if t.reading.TryLock() {
		t.close()
		t.reading.Unlock()
	}
}

// close closes the caller's body, once, also during a read.
func (t *tape) close() error {
	t.mu.Lock()
	was := t.closed
	t.closed = true
	t.mu.Unlock()
	if was {
		return nil
	}
	return t.body.Close()
}

type cursor struct {
	t   *tape
	off int
}

// Read implements io.Reader. It reads what is on the tape, and beyond it from
// the caller's body.
func (c *cursor) Read(p []byte) (int, error) {
	if n, err, done := c.recorded(p); done {
		return n, err
	}
	t := c.t
	t.reading.Lock()
	defer t.reading.Unlock()
	// A try from before may have read on meanwhile.
	if n, err, done := c.recorded(p); done {
		return n, err
	}
	n, err := t.body.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	if t.ended && !t.closed {
		t.closed = true
		t.body.Close()
	}
	if c != t.latest {
		// It was read for a try that is over: the next one needs it, whatever
		// the limit.
		t.buf = append(t.buf, p[:n]...)
		return 0, http.ErrBodyReadAfterClose
	}
	if !t.lost && int64(len(t.buf)+n) > t.limit {
		t.lost, t.buf, c.off = true, nil, 0
	}
	if !t.lost {
		t.buf = append(t.buf, p[:n]...)
		c.off = len(t.buf)
	}
	return n, err
}

// recorded reads from the tape. done: there is something, or nothing more to come.
func (c *cursor) recorded(p []byte) (n int, err error, done bool) {
	t := c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c != t.latest:
		return 0, http.ErrBodyReadAfterClose, true
	case c.off < len(t.buf):
		n = copy(p, t.buf[c.off:])
		c.off += n
		if t.lost && c.off == len(t.buf) {
			t.buf, c.off = nil, 0
		}
		return n, nil, true
	case t.err != nil:
		return 0, t.err, true
	case len(p) == 0:
		return 0, nil, true
	}
	return 0, nil, false
}

// Close implements io.Closer. A try's end is the body's only if it is the last.
func (c *cursor) Close() error {
	c.t.mu.Lock()
	latest := c == c.t.latest
	c.t.mu.Unlock()
	if !latest {
		return nil
	}
	return c.t.close()
}

// dress gives a request, a copy of the caller's, the body of its next try.
func (o *outgoing) dress(r *http.Request, b *outBody) error {
	if err := o.next(b); err != nil {
		return err
	}
	r.Body = b
	if o.whole != nil {
		if r.ContentLength <= 0 {
			r.ContentLength, r.TransferEncoding = int64(len(o.whole)), nil
		}
		if len(o.whole) == 0 {
			r.Body = http.NoBody
		}
	}
	return nil
}
