package balancer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipeBody is a caller's body that is fed by the test, and counts its readings and closings.
type pipeBody struct {
	*io.PipeReader
	reads  atomic.Int64
	mu     sync.Mutex
	closed int
}

func (b *pipeBody) Read(p []byte) (int, error) {
	b.reads.Add(1)
	return b.PipeReader.Read(p)
}

func (b *pipeBody) Close() error {
	b.mu.Lock()
	b.closed++
	b.mu.Unlock()
	return b.PipeReader.Close()
}

func (b *pipeBody) closings() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// fed returns the body of a request, and where to feed it.
func fed(t *testing.T, limit int64) (*outgoing, *pipeBody, *io.PipeWriter) {
	pr, pw := io.Pipe()
	body := &pipeBody{PipeReader: pr}
	r, err := http.NewRequest("PUT", "http://backend/", body)
	require.NoError(t, err)
	o := new(outgoing)
	o.reset(r, limit)
	return o, body, pw
}

func read(t *testing.T, r io.Reader, n int) string {
	t.Helper()
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	require.NoError(t, err)
	return string(p)
}

// A try is over while its transport still waits for data of the caller's body: what
// comes then belongs to the next try.
func TestBodyHandedOver(t *testing.T) {
	o, body, feed := fed(t, 100)
	var first, second outBody
	require.NoError(t, o.next(&first))
	go io.WriteString(feed, "one ")
	require.Equal(t, "one ", read(t, &first, 4))

	// The first transport waits in Read.
	waiting := make(chan error)
	go func() {
		_, err := first.Read(make([]byte, 100))
		waiting <- err
	}()
	for !o.tape.isRead() {
	}
	require.True(t, o.again())
	require.NoError(t, o.next(&second))
	require.Equal(t, "one ", read(t, &second, 4), "from the beginning")
	go func() { io.WriteString(feed, "two"); feed.Close() }()
	rest, err := io.ReadAll(&second)
	require.NoError(t, err)
	require.Equal(t, "two", string(rest))
	require.Error(t, <-waiting, "the first gets nothing any more")
	_, err = first.Read(make([]byte, 1))
	require.Error(t, err)

	require.NoError(t, first.Close())
	require.Zero(t, body.closings(), "the first try's Close is not the body's")
	o.answered()
	require.NoError(t, second.Close())
	require.Equal(t, 1, body.closings())
	o.close()
	require.Equal(t, 1, body.closings())
}

// isRead reports whether somebody is reading the caller's body.
func (t *tape) isRead() bool {
	if t.reading.TryLock() {
		t.reading.Unlock()
		return false
	}
	return true
}

// The request fails while its transport still waits: the body is closed when the
// waiting is over, not under it.
func TestBodyClosedWhenNobodyReads(t *testing.T) {
	for _, limit := range []int64{0, 100} {
		o, body, feed := fed(t, limit)
		var b outBody
		require.NoError(t, o.next(&b))
		waiting := make(chan struct{})
		go func() {
			defer close(waiting)
			b.Read(make([]byte, 100))
		}()
		for body.reads.Load() == 0 { // it waits in the body itself, not before
			runtime.Gosched()
		}
		o.close()
		require.Zero(t, body.closings())
		io.WriteString(feed, "late")
		<-waiting
		require.Equal(t, 1, body.closings())
	}
}

// A body that outgrows what may be remembered is sent whole, and not again.
func TestBodyTooLong(t *testing.T) {
	o, _, feed := fed(t, 4)
	var b outBody
	require.NoError(t, o.next(&b))
	go func() { io.WriteString(feed, "four"); io.WriteString(feed, "five"); feed.Close() }()
	require.Equal(t, "four", read(t, &b, 4))
	require.True(t, o.again())
	require.Equal(t, "five", read(t, &b, 4))
	require.False(t, o.again())
	require.ErrorIs(t, o.next(new(outBody)), http.ErrBodyReadAfterClose)
	o.close()
}

// While a body is read before the first try, the caller's context ends the reading.
func TestReadFirstObeysContext(t *testing.T) {
	o, body, _ := fed(t, 100)
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	cancel(gone)
	require.ErrorIs(t, o.readFirst(ctx), gone)
	o.close()
	require.Equal(t, 1, body.closings())
}

// An empty body of unknown length is none.
func TestReadFirstEmpty(t *testing.T) {
	o, body, feed := fed(t, 100)
	feed.Close()
	require.NoError(t, o.readFirst(context.Background()))
	require.Equal(t, 1, body.closings())
	r := o.r.Clone(context.Background())
	require.NoError(t, o.dress(r, new(outBody)))
	require.Equal(t, http.NoBody, r.Body)
	require.Zero(t, r.ContentLength)
	o.close()
	require.Equal(t, 1, body.closings())
}
