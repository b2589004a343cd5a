package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/trunklb/trunk/peer"
)

// Options of a [Writer]. The zero value, and a nil *WriterOptions, are the defaults.
type WriterOptions struct {
	// Name and Note say to the reader what is recorded.
	Name, Note string
	// Method is the method to be written, where the upstream's own is another
	// one around it, as sticky.Over's is. nil: the upstream's.
	Method peer.Method
}

// ErrInUse is returned by peer.New for a Writer that another upstream has.
var ErrInUse = errors.New("trunk: recording: a Writer is for one upstream")

// errClosed ends the upstream's part of a recording that was closed.
var errClosed = errors.New("trunk: recording: closed")

// Writer writes the recording of one upstream; it is a [peer.Recorder], the
// value of peer.Options.Record. Goroutines may share it.
type Writer struct {
	options WriterOptions

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
// recording, and nothing else: Flush and Close tell of it.
func NewWriter(w io.Writer, o *WriterOptions) *Writer {
	if o == nil {
		o = &WriterOptions{}
	}
	return &Writer{to: w, options: *o, first: true}
}

// Start implements peer.Recorder. ErrInUse, if it is not the first call.
func (w *Writer) Start(o peer.Origin) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flush != nil {
		return ErrInUse
	}
	w.flush = o.Flush
	method := w.options.Method
	if method == nil {
		method = o.Method
	}
	h, err := newHeader(w.options.Name, w.options.Note, method, &o)
	if err != nil {
		return err
	}
	line, err := compact(h)
	if err != nil {
		return err
	}
	// That the recording cannot be written must not keep the upstream from
	// its work: Flush and Close tell of it.
	w.write(append(line[:len(line)-1], `,"ops":[`...))
	return nil
}

// Record implements peer.Recorder.
func (w *Writer) Record(ops []peer.Operation) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	line := w.line[:0]
	for i := range ops {
		op := &ops[i]
		if op.Time != w.time {
			w.time = op.Time
			line = appendTime(w.next(line), op.Time)
		}
		line = appendOperation(w.next(line), op)
	}
	w.line = line
	w.write(line)
	return w.err
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
