package balancer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// reply is an answer's body as the caller gets it: it holds the peer until it is
// read to its end or closed. The exchange is pooled and the reply is not, so
// that a caller that uses a body after its end touches no other request.
// Read and Close may be called at the same time, as of any body.
type reply struct {
	io.ReadCloser
	// x is nil once the peer was let go.
	x      atomic.Pointer[exchange]
	closed atomic.Bool
	// stop ends the watch over the request's context; nil: it has no end.
	stop func() bool
	// mu is held while the peer is let go, so that it is gone when Close returns.
	mu sync.Mutex
}

// Read implements io.Reader.
func (b *reply) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.release(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *reply) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	err := b.ReadCloser.Close()
	b.release(nil)
	return err
}

// release lets the peer go. err is what ended the reading; nil: it was closed.
func (b *reply) release(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x := b.x.Swap(nil); x != nil {
		if b.stop != nil {
			b.stop()
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		x.finish(err)
	}
}

// watch lets the peer go when the request's context ends: a caller that has gone may
// neither read nor close the body.
func (b *reply) watch(ctx context.Context, x *exchange) {
	if ctx.Done() == nil {
		return
	}
	if x.up.sticky != nil {
		// It learns from the header, which is the caller's to change by then.
		resp := *x.resp
		resp.Header = resp.Header.Clone()
		x.resp = &resp
	}
	b.stop = context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if x := b.x.Swap(nil); x != nil {
			x.finish(nil)
		}
	})
}

// tunnel is the body of a 101: a connection in both directions. The peer is held
// until it is closed; the end of one direction is not its end.
type tunnel struct {
	*reply
	rw io.ReadWriteCloser
}

// Read implements io.Reader.
func (t tunnel) Read(p []byte) (int, error) { return t.rw.Read(p) }

// Write implements io.Writer.
func (t tunnel) Write(p []byte) (int, error) { return t.rw.Write(p) }

// CloseWrite closes the direction to the peer, if the connection can.
func (t tunnel) CloseWrite() error {
	if cw, ok := t.rw.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return http.ErrNotSupported
}

// wrap puts the reply around the answer's body, to hold x's peer. It reports false
// where there is nothing to wait for.
func (b *reply) wrap(x *exchange, r *http.Request, resp *http.Response) bool {
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if resp.Body == http.NoBody || r.Method == http.MethodHead ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
		return false
	}
	b.ReadCloser = resp.Body
	if rw, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = tunnel{b, rw} // it outlives the context
		b.x.Store(x)
		return true
	}
	resp.Body = b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch(r.Context(), x)
	b.x.Store(x)
	return true
}
