package main

import (
	"io"
	"net"
	"net/http"
)

// fleet is the servers that were started.
type fleet struct{ servers []*server }

// server answers with its version.
type server struct {
	addr string
	http http.Server
}

func (f *fleet) start(version string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: l.Addr().String()}
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, version) })
	f.servers = append(f.servers, s)
	go s.http.Serve(l)
	return s, nil
}

// close ends a server at once, as a crash would: whoever still asks it is not
// answered.
func (s *server) close() { s.http.Close() }

func (f *fleet) close() {
	for _, s := range f.servers {
		s.close()
	}
}
