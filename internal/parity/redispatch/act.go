//go:build linux

package redispatch

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// act does with one request what the behaviour says. It reports whether the
// connection stays open for another.
func (b *backend) act(conn *net.TCPConn, req *http.Request, a *arrival, how behaviour) bool {
	head := req.Method == http.MethodHead
	switch how.name {
	case "early_response":
		b.answer(conn, how, head, true)
		b.pause(earlyDelay)
		return false
	case "stall_body":
		<-b.done
		return false
	}

	n, right, err := readPattern(req.Body)
	if err != nil {
		return false
	}
	b.journal.read(a, n, right)

	reset := strings.HasPrefix(how.name, "reset_")
	switch how.name {
	case "ok", "status", "slow_header", "slow_status":
		b.pause(how.delay)
		b.answer(conn, how, head, !b.keepalive)
		return b.keepalive
	case "ok_conn_close":
		b.answer(conn, how, head, true)
	case "ok_close", "ok_rst":
		b.answer(conn, how, head, false)
		b.pause(how.delay)
		finish(conn, how.name == "ok_rst")
	case "slow_close":
		b.pause(how.delay)
	case "hang":
		// Until the proxy has had enough.
		io.Copy(io.Discard, conn)
	case "close_before_response", "reset_before_response", "reset_on_accept":
		finish(conn, reset)
	case "close_mid_header", "reset_mid_header":
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Part")
		b.pause(partialDelay)
		finish(conn, reset)
	case "invalid_header":
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nX-Backend: %s\r\nX-B\x00d: 1\r\nContent-Length: 1\r\nConnection: close\r\n\r\n%s", b.id, b.id)
	case "garbage_status":
		io.WriteString(conn, "GARBAGE not http at all\r\n\r\n")
		b.pause(partialDelay)
	case "close_mid_body", "reset_mid_body":
		b.part(conn, "Content-Length: 1000", "0123456789", head)
		finish(conn, reset)
	case "close_mid_chunked":
		b.part(conn, "Transfer-Encoding: chunked", "a\r\n0123456789\r\n", head)
	}
	return false
}

// answer writes a whole answer: the letter as body, and in X-Backend.
func (b *backend) answer(conn *net.TCPConn, how behaviour, head, last bool) {
	var s strings.Builder
	fmt.Fprintf(&s, "HTTP/1.1 %d %s\r\nX-Backend: %s\r\nContent-Length: %d\r\n",
		how.status, http.StatusText(how.status), b.id, len(b.id))
	if last {
		s.WriteString("Connection: close\r\n")
	}
	s.WriteString("\r\n")
	if !head {
		s.WriteString(b.id)
	}
	io.WriteString(conn, s.String())
}

// part writes an answer whose body will not be whole.
func (b *backend) part(conn *net.TCPConn, framing, body string, head bool) {
	header := "HTTP/1.1 200 OK\r\nX-Backend: " + b.id + "\r\n" + framing + "\r\nConnection: close\r\n\r\n"
	if head {
		io.WriteString(conn, header)
		return
	}
	io.WriteString(conn, header+body)
	b.pause(bodyPartDelay)
}
