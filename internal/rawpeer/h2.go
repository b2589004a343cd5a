package rawpeer

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// Frame types and flags of HTTP/2 (RFC 9113, section 6).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameRST          = 0x3
	frameSettings     = 0x4
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// Frame returns an HTTP/2 frame.
func Frame(kind, flags byte, stream uint32, payload string) string {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	b = binary.BigEndian.AppendUint32(b, stream)
	return string(b) + payload
}

func number(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// h2Conn is one connection of HTTP/2.
type h2Conn struct {
	p      *Peer
	c, raw net.Conn
	n      int
	mu     sync.Mutex // held while a frame is written
	ended  bool
}

func (h *h2Conn) write(b string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	io.WriteString(h.c, b)
}

func (h *h2Conn) run() {
	begin := make([]byte, len(preface))
	if _, err := io.ReadFull(h.c, begin); err != nil || string(begin) != preface {
		return
	}
	// INITIAL_WINDOW_SIZE and the connection's window: a body is never held back.
	h.write(Frame(frameSettings, 0, 0, "\x00\x04"+number(1<<30)) + Frame(frameWindowUpdate, 0, 0, number(1<<30)))
	open, count := map[uint32]bool{}, 0 // streams whose body has not ended
	for !h.ended {
		var head [9]byte
		if _, err := io.ReadFull(h.c, head[:]); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(h.c, payload); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch kind {
		case frameSettings:
			if flags&flagAck == 0 {
				h.write(Frame(frameSettings, flagAck, 0, ""))
			}
		case framePing:
			if flags&flagAck == 0 {
				h.write(Frame(framePing, flagAck, 0, string(payload)))
			}
		case frameHeaders:
			last := flags&flagEndStream != 0
			if last || h.p.Early {
				h.p.arrived(h.n, count, !last, &h2{h, stream})
				count++
			} else {
				open[stream] = true
			}
		case frameData:
			if flags&flagEndStream != 0 && open[stream] {
				delete(open, stream)
				h.p.arrived(h.n, count, false, &h2{h, stream})
				count++
			}
		case frameRST:
			delete(open, stream)
		}
	}
}

// h2 is a request over HTTP/2.
type h2 struct {
	*h2Conn
	stream uint32
}

func (s *h2) Answer(status int, body string) {
	// :status as a literal without indexing, its name the static table's 8th.
	head := fmt.Sprintf("\x08\x03%03d", status)
	// content-length likewise, the 28th.
	length := fmt.Sprint(len(body))
	head += "\x0f\x0d" + string(rune(len(length))) + length
	s.Raw(Frame(frameHeaders, flagEndHeaders, s.stream, head) + Frame(frameData, flagEndStream, s.stream, body))
}

func (s *h2) Raw(b string) { s.write(b) }

func (s *h2) Cut() {
	s.ended = true
	s.c.Close()
}

func (s *h2) Reset() {
	s.ended = true
	reset(s.raw)
}

func (s *h2) Partly() {
	s.Raw(Frame(frameHeaders, flagEndHeaders, s.stream, "\x08\x03200")[:11])
	s.Cut()
}

func (s *h2) RefuseStream(code uint32) { s.Raw(Frame(frameRST, 0, s.stream, number(code))) }

func (s *h2) GoAway(covers bool, code uint32) {
	last := s.stream
	if !covers {
		last -= min(last, 2)
	}
	if !covers && s.stream == 1 {
		last = 0
	}
	s.Raw(Frame(frameGoAway, 0, 0, number(last)+number(code)))
}
