package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/trunklb/trunk/internal/oplog"
	"github.com/trunklb/trunk/peer"
)

// Options of a [Writer]. The zero value, and a nil *WriterOptions, are the defaults.
type WriterOptions struct {
	// Name and Note say to the reader what is recorded.
	Name, Note string
	// Redact, if not nil, replaces the texts that are written; a hint that comes
	// out longer than peer.MaxRoute is written as its MD5. It must give the same for the
	// same, and something different for different addresses and sids, or peers
	// could no longer be distinguished: a *peer.ConfigError by peer.New, or the end
	// of the recording where a changed set brings it. Name, Note, and the
	// method's key text are written as they are.
	//
	// A redacted recording replays as any other where the texts decide nothing.
	// They do with hash (the key; with Consistent the names or addresses too) and
	// ip_hash (the client): what they decided can be replayed only if Redact has
	// left them as they were. [Difference] says of a recording that it was redacted.
	// With sticky the hints of clients must not become another peer's sid.
	Redact func(kind peer.TextKind, text string) string
}

// ErrInUse is returned by peer.New for a Writer that another upstream has.
var ErrInUse = errors.New("trunk: recording: a Writer is for one upstream")

// errClosed ends the upstream's part of a recording that was closed.
var errClosed = errors.New("trunk: recording: closed")

// Writer writes the recording of one upstream; it is the
// value of peer.Options.Record. Goroutines may share it.
type Writer struct {
	options WriterOptions
	redact  redaction

	mu     sync.Mutex
	to     io.Writer
	flush  func() error // the upstream's
	line   []byte
	first  bool // no operation has been written yet
	time   time.Duration
	err    error // of to
	closed bool
	ended  error // what Close returned
}

// NewWriter makes a Writer that writes to w, one Write per batch of whole
// operations, under load or not. It does not buffer: what a crash can lose are
// the operations that were not yet written. An error of w, or a panic, ends the
// recording, and nothing else: Flush and Close report it.
func NewWriter(w io.Writer, o *WriterOptions) *Writer {
	if o == nil {
		o = &WriterOptions{}
	}
	return &Writer{to: w, options: *o, redact: redaction{f: o.Redact, was: map[peer.TextKind]map[string]string{peer.TextAddr: {}, peer.TextHint: {}}}, first: true}
}

// Start is called by package peer. ErrInUse, if it is not the first call.
func (w *Writer) Start(o origin) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flush != nil {
		return ErrInUse
	}
	w.flush = o.Flush
	h, err := newHeader(w.options.Name, w.options.Note, &o)
	if err != nil {
		return err
	}
	h.Redacted = w.redact.f != nil
	if err := w.redact.servers(h.Servers); err != nil {
		return err
	}
	line, err := compact(h)
	if err != nil {
		return err
	}
	// That the recording cannot be written must not keep the upstream from
	// its work: Flush and Close report it.
	w.write(append(line[:len(line)-1], `,"ops":[`...))
	return nil
}

// Record is called by package peer.
func (w *Writer) Record(ops []done) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	line := w.line[:0]
	var err error
	for i := 0; i < len(ops) && err == nil; i++ {
		op := &ops[i]
		if op.Time != w.time {
			w.time = op.Time
			line = appendTime(w.next(line), op.Time)
		}
		if op.Kind == oplog.Update {
			line, err = w.appendUpdate(line, op)
		} else {
			line = appendOperation(w.next(line), op, &w.redact)
		}
	}
	w.line = line
	w.write(line)
	return cmp.Or(w.err, err)
}

// appendUpdate writes a new set, if it can be redacted.
func (w *Writer) appendUpdate(b []byte, op *done) ([]byte, error) {
	list := newServers(op.Set)
	if err := w.redact.servers(list); err != nil {
		return b, err
	}
	servers, err := compact(list)
	if err != nil {
		return b, err
	}
	b = append(append(w.next(b), `{"op":"update","servers":`...), servers...)
	return append(appendChanges(appendDraws(b, op.Draws), op.Changed), '}'), nil
}

// next begins the line of another operation.
func (w *Writer) next(b []byte) []byte {
	if w.first {
		w.first = false
		return append(b, '\n')
	}
	return append(b, ",\n"...)
}

// write writes, unless that has failed before: nothing must follow a gap. A panic is a
// failure like any other, be it at the recording's beginning, in its middle or at its end.
func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			w.err = fmt.Errorf("trunk: recording: the io.Writer panicked: %v", v)
		}
	}()
	_, w.err = w.to.Write(b)
}

// Flush waits until all that has been asked of the upstream is written. It returns
// the error that ended the recording: the io.Writer's, or peer.ErrRecordingFull.
func (w *Writer) Flush() error {
	w.mu.Lock()
	flush, err := w.flush, w.ended
	if w.closed {
		flush = nil
	}
	w.mu.Unlock()
	if flush != nil {
		err = flush()
		w.mu.Lock()
		err = cmp.Or(w.err, err) // the upstream knows only what Record has returned
		w.mu.Unlock()
	}
	return err
}

// Close ends the recording after what has been asked of the upstream before, and
// returns what Flush does. The upstream goes on, unrecorded. The io.Writer stays
// open. It may be called more than once.
func (w *Writer) Close() error {
	err := w.Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.ended
	}
	w.closed = true
	if w.flush == nil {
		return nil // it was never used
	}
	end := []byte("\n]}\n")
	if err != nil {
		end = append(appendText([]byte("\n],\"end\":"), err.Error()), "}\n"...)
	}
	w.write(end)
	w.ended = cmp.Or(w.err, err)
	return w.ended
}
