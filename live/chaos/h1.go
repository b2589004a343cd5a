package main

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// h1Request is one request of HTTP/1.1, on a raw connection.
type h1Request struct {
	conn net.Conn
	tcp  *net.TCPConn // beneath
	in   *bufio.Reader
	req  *http.Request
	id   int
	sum  checksum
	keep bool // the connection goes on
}

// checksum is what is said of a request's body in its answer.
type checksum struct {
	n   int64
	crc uint32
}

func (s *checksum) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	s.crc = crc32.Update(s.crc, crc32.IEEETable, p)
	return len(p), nil
}

// answerTo is the body of each good answer: the caller knows what it must be.
func answerTo(id int, s checksum) string {
	return fmt.Sprintf("chaos %d %d %08x\n", id, s.n, s.crc)
}

func itoa(n int) string { return strconv.Itoa(n) }

// idOf reads the number of a request. One without is none of ours: 0.
func idOf(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// idHeader carries the number.
const idHeader = "X-Chaos"

func (s *server) serveH1(c net.Conn, tcp *net.TCPConn) {
	in := bufio.NewReader(c)
	for keep := true; keep; s.busy(c, false) {
		if _, err := in.Peek(1); err != nil {
			return
		}
		s.busy(c, true)
		req, err := http.ReadRequest(in)
		if err != nil {
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			tcp.CloseWrite()
			drain(tcp)
			return
		}
		r := &h1Request{conn: c, tcp: tcp, in: in, req: req, id: idOf(req.Header.Get(idHeader)), keep: true}
		d := s.next(r.id)
		if !d.early && !r.read() {
			return
		}
		d.h1(r)
		keep = r.keep
	}
}

// read reads the request's body to its end.
func (r *h1Request) read() bool {
	_, err := io.Copy(&r.sum, r.req.Body)
	return err == nil
}

func (r *h1Request) write(text string) {
	if _, err := io.WriteString(r.conn, text); err != nil {
		r.keep = false
	}
}

// head is a good answer's header, and body what follows.
func (r *h1Request) head(status int, fields string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: %d\r\n%s\r\n", status, http.StatusText(status), len(r.body()), fields)
}

func (r *h1Request) body() string { return answerTo(r.id, r.sum) }

func (r *h1Request) bodyUnlessHead() string {
	if r.req.Method == "HEAD" {
		return ""
	}
	return r.body()
}

func (r *h1Request) answer(status int) { r.write(r.head(status, "") + r.bodyUnlessHead()) }

func (r *h1Request) pieces() {
	r.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	if r.req.Method == "HEAD" {
		return
	}
	for _, b := range r.body() {
		r.write(fmt.Sprintf("1\r\n%c\r\n", b))
	}
	r.write("0\r\n\r\n")
}

func (r *h1Request) hints() {
	r.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
	r.answer(200)
}

func (r *h1Request) goodbye() {
	r.write(r.head(200, "Connection: close\r\n") + r.bodyUnlessHead())
	r.keep = false
}

func (r *h1Request) cutIdle() {
	r.answer(200)
	r.keep = false
}

// impatient closes the connection where the body is not there after a moment.
func (r *h1Request) impatient() {
	r.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if !r.read() {
		r.keep = false
		return
	}
	r.conn.SetReadDeadline(time.Time{})
	r.answer(200)
}

func (r *h1Request) reset() {
	r.tcp.SetLinger(0)
	r.tcp.Close()
	r.keep = false
}

func (r *h1Request) cut() { r.keep = false }

func (r *h1Request) halfClose() {
	r.tcp.CloseWrite()
	drain(r.tcp)
	r.keep = false
}

// half answers with a header and a part of its body. For HEAD that is all.
func (r *h1Request) half() { r.write(r.head(200, "") + r.bodyUnlessHead()[:len(r.bodyUnlessHead())/2]) }

// babble answers, and sends what was not asked for.
func (r *h1Request) babble() {
	r.answer(200)
	r.write("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
	r.keep = false
}

func (r *h1Request) drip() {
	for _, b := range r.head(200, "") {
		r.write(string(b))
		time.Sleep(time.Millisecond / 2)
	}
	r.write(r.bodyUnlessHead())
}

// freeze does not answer before the client goes.
func (r *h1Request) freeze() {
	drain(r.tcp)
	r.keep = false
}
