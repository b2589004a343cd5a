package main

import (
	"bufio"
	"io"
	"net"
	"strings"
)

// lineRequest is one line on a connection, which wants one back.
type lineRequest struct {
	tcp  *net.TCPConn
	id   int
	keep bool
}

func (s *server) serveLine(_ net.Conn, tcp *net.TCPConn) {
	in := bufio.NewReader(tcp)
	for keep := true; keep; {
		text, err := in.ReadString('\n')
		if err != nil {
			return
		}
		r := &lineRequest{tcp: tcp, id: idOf(strings.TrimSpace(text)), keep: true}
		s.next(r.id).line(r)
		keep = r.keep
	}
}

func (r *lineRequest) write(text string) { io.WriteString(r.tcp, text) }

func (r *lineRequest) answer() { r.write(answerTo(r.id, checksum{})) }

func (r *lineRequest) cut() { r.keep = false }

func (r *lineRequest) reset() {
	r.tcp.SetLinger(0)
	r.tcp.Close()
	r.keep = false
}

func (r *lineRequest) halfClose() {
	r.tcp.CloseWrite()
	r.freeze()
}

func (r *lineRequest) freeze() {
	drain(r.tcp)
	r.keep = false
}

func (r *lineRequest) babble() {
	r.answer()
	r.write("and so on\n")
}
