package rawpeer

import (
	"fmt"
	"io"
	"net"
)

// h1 is a request over HTTP/1.
type h1 struct {
	c, raw net.Conn
	ended  bool
}

func (s *h1) Answer(status int, body string) {
	s.Raw(fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body))
}

func (s *h1) Raw(b string) { io.WriteString(s.c, b) }

func (s *h1) Cut() {
	s.ended = true
	s.c.Close()
}

func (s *h1) Reset() {
	s.ended = true
	reset(s.raw)
}

func (s *h1) Partly() {
	s.Raw("HTTP/1.1 200 OK\r\nX-Par")
	s.Cut()
}

func (s *h1) RefuseStream(uint32) { panic("rawpeer: HTTP/1 has no streams") }

func (s *h1) GoAway(bool, uint32) { panic("rawpeer: HTTP/1 has no GOAWAY") }
