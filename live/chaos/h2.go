package main

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2Conn is a connection of HTTP/2, frame by frame.
type h2Conn struct {
	server *server
	conn   net.Conn
	tcp    *net.TCPConn

	mu      sync.Mutex // of what is written, and of the streams
	frames  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	open    map[uint32]*h2Request
	highest uint32 // of the streams that are processed
	begun   int    // streams
	// leaving: a GOAWAY was sent. Streams above last are ignored.
	leaving bool
	last    uint32
}

// h2Request is one stream.
type h2Request struct {
	c      *h2Conn
	stream uint32
	id     int
	head   bool // the method is HEAD
	do     *deed
	sum    checksum
}

func (s *server) serveH2(conn net.Conn, tcp *net.TCPConn) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	c := &h2Conn{server: s, conn: conn, tcp: tcp, open: map[uint32]*h2Request{}, frames: http2.NewFramer(conn, conn)}
	c.encoder = hpack.NewEncoder(&c.block)
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.write(func() {
		c.frames.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100})
		c.frames.WriteWindowUpdate(0, 1<<24)
	})
	var deeds sync.WaitGroup
	defer deeds.Wait()
	defer conn.Close()
	for {
		f, err := c.frames.ReadFrame()
		if wrong := (http2.StreamError{}); errors.As(err, &wrong) {
			// A request that is wrong breaks none of the others.
			c.write(func() { c.frames.WriteRSTStream(wrong.StreamID, http2.ErrCodeProtocol) })
			continue
		}
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.write(func() { c.frames.WriteSettingsAck() })
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				c.write(func() { c.frames.WritePing(true, f.Data) })
			}
		case *http2.RSTStreamFrame:
			c.end(f.StreamID)
		case *http2.MetaHeadersFrame:
			if r := c.begin(f); r != nil && (r.do.early || f.StreamEnded()) {
				deeds.Go(r.run)
			}
		case *http2.DataFrame:
			if r := c.data(f); r != nil && f.StreamEnded() {
				deeds.Go(r.run)
			}
		}
	}
}

// write runs what writes frames.
func (c *h2Conn) write(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(slow))
	f()
}

// begin makes a request of a header; nil: the stream is ignored.
func (c *h2Conn) begin(f *http2.MetaHeadersFrame) *h2Request {
	r := &h2Request{c: c, stream: f.StreamID, head: f.PseudoValue("method") == "HEAD"}
	for _, field := range f.RegularFields() {
		if field.Name == "x-chaos" {
			r.id = idOf(field.Value)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving && r.stream > c.last {
		c.server.ledger.add(r.id, mark{c.server, ignores})
		return nil
	}
	c.begun++
	c.open[r.stream] = r
	if r.do = c.server.next(r.id); !r.do.unprocessed {
		c.highest = r.stream
	}
	return r
}

// data takes a part of a request's body, and returns the request if it waits for its end.
func (c *h2Conn) data(f *http2.DataFrame) *h2Request {
	c.mu.Lock()
	r := c.open[f.StreamID]
	c.mu.Unlock()
	if n := uint32(len(f.Data())); n > 0 {
		c.write(func() {
			c.frames.WriteWindowUpdate(0, n)
			if r != nil {
				c.frames.WriteWindowUpdate(f.StreamID, n)
			}
		})
	}
	if r == nil || r.do.early {
		return nil
	}
	r.sum.Write(f.Data())
	return r
}

// end forgets a stream. A connection that is leaving ends with its last one: it writes
// no more, and is read until the client has closed it.
func (c *h2Conn) end(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, stream)
	if c.leaving && len(c.open) == 0 {
		c.closeWrite()
		c.conn.SetReadDeadline(time.Now().Add(slow))
	}
}

func (c *h2Conn) closeWrite() {
	if cw, ok := c.conn.(interface{ CloseWrite() error }); ok {
		cw.CloseWrite()
	}
}

// run does the deed.
func (r *h2Request) run() { r.do.h2(r) }

// header writes an answer's header. Under the lock.
func (r *h2Request) header(ends, whole bool, fields ...string) {
	r.c.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		r.c.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	r.c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: r.stream, BlockFragment: r.c.block.Bytes(), EndStream: ends, EndHeaders: whole})
}

func (r *h2Request) body() []byte { return []byte(answerTo(r.id, r.sum)) }

func (r *h2Request) answer(status int) {
	r.c.write(func() { r.writeAnswer(status) })
	r.c.end(r.stream)
}

func (r *h2Request) writeAnswer(status int) {
	r.header(r.head, true, ":status", itoa(status), "content-length", itoa(len(r.body())))
	if !r.head {
		r.c.frames.WriteData(r.stream, true, r.body())
	}
}

func (r *h2Request) pieces() {
	r.c.write(func() { r.header(r.head, true, ":status", "200") })
	if !r.head {
		for _, b := range r.body() {
			r.c.write(func() { r.c.frames.WriteData(r.stream, false, []byte{b}) })
		}
		r.c.write(func() { r.c.frames.WriteData(r.stream, true, nil) })
	}
	r.c.end(r.stream)
}

func (r *h2Request) hints() {
	r.c.write(func() { r.header(false, true, ":status", "103", "link", "</a>") })
	r.answer(200)
}

// goodbye answers and ends the connection as RFC 9113, 6.8 wants it: what has been received
// is answered, and what comes later is ignored. As with nginx's keepalive_requests, the
// connection has carried some requests before.
func (r *h2Request) goodbye() {
	const least = 50
	many := false
	r.c.write(func() {
		r.writeAnswer(200)
		many = r.c.begun >= least
	})
	if many {
		r.c.leave(math.MaxInt32)
	}
	r.c.end(r.stream)
}

func (r *h2Request) refuse() {
	r.c.write(func() { r.c.frames.WriteRSTStream(r.stream, http2.ErrCodeRefusedStream) })
	r.c.end(r.stream)
}

func (r *h2Request) reset() {
	r.c.write(func() { r.c.frames.WriteRSTStream(r.stream, http2.ErrCodeInternal) })
	r.c.end(r.stream)
}

// cut breaks the connection, with all that is on it.
func (r *h2Request) cut() { r.c.tcp.Close() }

func (r *h2Request) halfClose() { r.c.tcp.CloseWrite() }

func (r *h2Request) halfHeader() {
	r.c.write(func() { r.header(false, false, ":status", "200") })
	r.cut()
}

// half answers with a header and a part of its body.
func (r *h2Request) half() {
	r.c.write(func() {
		r.header(false, true, ":status", "200", "content-length", itoa(len(r.body())))
		if !r.head {
			r.c.frames.WriteData(r.stream, false, r.body()[:4])
		}
	})
}

func (r *h2Request) badStatus() {
	r.c.write(func() { r.header(true, true, ":status", "xyz") })
	r.c.end(r.stream)
}

func (r *h2Request) raw(text string) {
	r.c.write(func() { io.WriteString(r.c.conn, text) })
}

func (r *h2Request) freeze() {}

// goAwayFromEach says that the request was not processed, as truly as a GOAWAY can, and closes.
func (r *h2Request) goAwayFromEach() {
	if !r.c.leave(r.stream - 1) {
		r.refuse()
		return
	}
	r.cut()
}

// leave says GOAWAY with the last stream that is processed, if that is at most most.
func (c *h2Conn) leave(most uint32) (may bool) {
	c.write(func() {
		if may = !c.leaving && c.highest <= most; may {
			c.leaving, c.last = true, c.highest
			c.frames.WriteGoAway(c.last, http2.ErrCodeNo, nil)
		}
	})
	return may
}

func (r *h2Request) goAwayWithError() {
	r.c.write(func() { r.c.frames.WriteGoAway(r.stream, http2.ErrCodeInternal, nil) })
	r.cut()
}
