package rawpeer

import "strings"

// An Odd answer is one that is no HTTP, or hardly.
type Odd struct {
	Name, Bytes string
	// Cut: the connection ends with it.
	Cut bool
	// Nginx, Nginx122 (release 1.22, if it differs) and Trunk are the kind of failure that they
	// see in it: "invalid_header" or "error"; or the status of the answer that they pass on,
	// "broken" where that is no response by itself.
	Nginx, Trunk, Nginx122 string
}

// Odds are odd answers to a GET, over HTTP/1.
var Odds = []Odd{
	{"two equal Content-Length", ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", false, "invalid_header", "200", "200"},
	{"two different Content-Length", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", false, "invalid_header", "invalid_header", "200"},
	{"Content-Length is no number", ok + "Content-Length: x\r\n\r\nx", true, "invalid_header", "invalid_header", "200"},
	{"Content-Length below zero", ok + "Content-Length: -1\r\n\r\nx", true, "invalid_header", "invalid_header", "200"},
	{"Content-Length is empty", ok + "Content-Length:\r\n\r\nx", true, "invalid_header", "invalid_header", "200"},
	{"two Transfer-Encoding", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, "invalid_header", "invalid_header", "200"},
	{"a Transfer-Encoding of another kind", ok + "Transfer-Encoding: gzip\r\n\r\nx", true, "invalid_header", "invalid_header", "200"},
	{"Transfer-Encoding and Content-Length", ok + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\nx\r\n0\r\n\r\n", false, "invalid_header", "200", "200"},
	{"text", "hello\r\n\r\n", true, "broken", "invalid_header", ""},
	{"a status line alone, cut", "HTTP/1.1 200 OK\r\n", true, "error", "error", ""},
	{"a part of a status line, cut", "HTTP/1.1 20", true, "error", "error", ""},
	{"a header, cut in a line", ok + "X-Some: th", true, "error", "error", ""},
	{"nothing, cut", "", true, "error", "error", ""},
	{"a status of letters", "HTTP/1.1 abc OK\r\n\r\n", true, "broken", "invalid_header", ""},
	{"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", true, "broken", "invalid_header", ""},
	{"a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", true, "broken", "invalid_header", ""},
	{"a status below zero", "HTTP/1.1 -20 OK\r\n\r\n", true, "broken", "invalid_header", ""},
	{"no status", "HTTP/1.1\r\n\r\n", true, "broken", "invalid_header", ""},
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false, "200", "200", ""},
	{"a version of another kind", "HTTP/x.1 200 OK\r\nContent-Length: 0\r\n\r\n", true, "broken", "invalid_header", ""},
	{"a protocol of another kind", "ICY 200 OK\r\nContent-Length: 0\r\n\r\n", true, "broken", "invalid_header", ""},
	{"a line without colon", ok + "X-Some thing\r\n\r\n", true, "invalid_header", "invalid_header", ""},
	{"a line without name", ok + ": thing\r\n\r\n", true, "invalid_header", "invalid_header", ""},
	{"a space before the colon", ok + "X-Some : thing\r\nContent-Length: 0\r\n\r\n", true, "invalid_header", "200", ""},
	{"a first line that is folded", ok + " thing\r\n\r\n", true, "invalid_header", "invalid_header", ""},
	{"a NUL in a name", ok + "X-So\x00me: thing\r\nContent-Length: 0\r\n\r\n", true, "invalid_header", "invalid_header", ""},
	{"a NUL in a value", ok + "X-Some: th\x00ing\r\nContent-Length: 0\r\n\r\n", true, "invalid_header", "invalid_header", ""},
	{"a CR in a value", ok + "X-Some: th\ring\r\nContent-Length: 0\r\n\r\n", true, "invalid_header", "invalid_header", ""},
	{"lines that end in LF alone", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", false, "200", "200", ""},
	{"a header of 20 KB", ok + "X-Some: " + strings.Repeat("a", 20<<10) + "\r\nContent-Length: 0\r\n\r\n", false, "invalid_header", "200", ""},
	{"a header that does not end", ok + "X-Some: " + strings.Repeat("a", 12<<20), false, "invalid_header", "invalid_header", ""},
	{"a status line that does not end", "HTTP/1.1 200 " + strings.Repeat("a", 12<<20), false, "invalid_header", "invalid_header", ""},
	{"100,000 times 103", strings.Repeat("HTTP/1.1 103 Early Hints\r\nX-Some: "+strings.Repeat("a", 100)+"\r\n\r\n", 100_000), true, "error", "invalid_header", "broken"},
	{"a chunk size that is no number", ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n", true, "broken", "200", ""},
	{"a chunk size that is too large", ok + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", true, "broken", "200", ""},
}

const ok = "HTTP/1.1 200 OK\r\n"
