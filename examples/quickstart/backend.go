package main

import (
	"io"
	"net"
	"net/http"
)

// backend is a server that answers with its name, and can be killed and brought back.
type backend struct {
	name, addr string
	server     *http.Server
}

func (b *backend) start(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	b.addr = l.Addr().String()
	b.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, b.name) })}
	go b.server.Serve(l) // until it is killed
	return nil
}

// kill closes the port and every connection.
func (b *backend) kill() { b.server.Close() }
