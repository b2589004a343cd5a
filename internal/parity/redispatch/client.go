//go:build linux

package redispatch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Host is the name that clients ask for, and that the peers must be asked for.
const Host = "backend"

// patience is how long a client waits for the end of an answer. No recorded
// request takes nearly as long.
const patience = 20 * time.Second

// answer is what a client saw.
type answer struct {
	status     Status
	httpStatus int // of a truncated answer
	servedBy   string
	problem    string
}

// send sends the request of a step, and reads until the proxy closes the
// connection, or until the client is to leave.
func send(proxy string, step int, req Request) (answer, error) {
	dialer := net.Dialer{Timeout: patience}
	if req.Src != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(req.Src)}
	}
	conn, err := dialer.Dial("tcp4", proxy)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	deadline := time.Now().Add(patience)
	if req.AbortAfter > 0 {
		deadline = time.Now().Add(req.AbortAfter.Duration())
	}
	conn.SetReadDeadline(deadline)

	stop := make(chan struct{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		write(conn, step, req, stop)
	}()
	got, err := io.ReadAll(conn)
	close(stop)
	conn.Close()
	<-written

	if errors.Is(err, os.ErrDeadlineExceeded) && !complete(got, req.Method) {
		if req.AbortAfter > 0 {
			return answer{status: Aborted}, nil
		}
		return answer{status: Silent}, nil
	}
	return interpret(got, req.Method), nil
}

// write sends header and body: in one write, or the body later. Its errors are
// none: an answer may come before the body is sent.
func write(conn net.Conn, step int, req Request, stop <-chan struct{}) {
	body := patternBody(req.BodyLen)
	header := requestHeader(step, req)
	if req.BodyDelay == 0 {
		conn.Write(append(header, body...))
		return
	}
	conn.Write(header)
	timer := time.NewTimer(req.BodyDelay.Duration())
	defer timer.Stop()
	select {
	case <-timer.C:
		conn.Write(body)
	case <-stop:
	}
}

// path is what a client asks for, and what its peers must be asked for.
func (r Request) path() string {
	if r.Key == "" {
		return "/p"
	}
	return "/p?k=" + r.Key
}

func requestHeader(step int, req Request) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s: %d\r\n", req.Method, req.path(), Host, stepHeader, step)
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", req.BodyLen)
	default:
		if req.BodyLen > 0 {
			fmt.Fprintf(&b, "Content-Length: %d\r\n", req.BodyLen)
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func complete(got []byte, method string) bool {
	a := interpret(got, method)
	return a.httpStatus == 0 && a.status != Closed && a.status != HTTP09
}

// interpret says what the bytes are that came until the connection was closed.
func interpret(got []byte, method string) answer {
	if len(got) == 0 {
		return answer{status: Closed}
	}
	if !bytes.HasPrefix(got, []byte("HTTP/1.")) {
		return answer{status: HTTP09}
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), &http.Request{Method: method})
	if err != nil {
		return answer{status: Truncated, problem: fmt.Sprintf("not even the header is whole: %v", err)}
	}
	defer resp.Body.Close()
	a := answer{status: code2status(resp.StatusCode), servedBy: resp.Header.Get("X-Backend")}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.status, a.httpStatus = Truncated, resp.StatusCode
		if !strings.HasPrefix("0123456789", string(body)) {
			a.problem = fmt.Sprintf("the part of the body is %q", body)
		}
		return a
	}
	if a.servedBy != "" && method != http.MethodHead && string(body) != a.servedBy {
		a.problem = fmt.Sprintf("the body is %q, not the backend's", body)
	}
	return a
}
