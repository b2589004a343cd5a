// Tcpproxy passes TCP connections on to several servers: Upstream.DialContext in
// the place of net.Dial, for whatever protocol.
//
//	go run ./examples/tcpproxy
//	go run ./examples/tcpproxy -listen :6379 10.0.0.1:6379 10.0.0.2:6379
//
// Without addresses it shows itself: it starts three servers of its own, sends
// connections through, lets one of the servers die, and ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"

	"github.com/trunklb/trunk/balancer"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "address to listen on, where servers are given")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := show
	if flag.NArg() > 0 {
		run = func(ctx context.Context, out io.Writer) error { return serve(ctx, out, *listen, flag.Args()) }
	}
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tcpproxy:", err)
		os.Exit(1)
	}
}

// serve is the proxy, until the context ends.
func serve(ctx context.Context, out io.Writer, listen string, servers []string) error {
	up, err := newUpstream(ctx, servers)
	if err != nil {
		return err
	}
	defer up.Close()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening on", l.Addr())
	return accept(ctx, l, up)
}

func newUpstream(ctx context.Context, servers []string) (*balancer.Upstream, error) {
	var c balancer.Config
	for _, addr := range servers {
		c.Servers = append(c.Servers, balancer.Server{Addr: addr})
	}
	return balancer.New(ctx, c)
}

// accept passes connections on until the context ends.
func accept(ctx context.Context, l net.Listener, up *balancer.Upstream) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		client, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		go pass(ctx, client, up)
	}
}

// pass copies in both directions until both have ended. On Linux the bytes stay
// in the kernel.
func pass(ctx context.Context, client net.Conn, up *balancer.Upstream) {
	defer client.Close()
	// hash would find the client's server by this.
	ctx = balancer.WithInput(ctx, balancer.Input{Key: client.RemoteAddr().String()})
	server, err := up.DialContext(ctx, "tcp", up.Name())
	if err != nil {
		return // every server was asked, or none is live
	}
	defer server.Close() // which lets the peer go
	defer context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		copyAll(server, client)
	}()
	copyAll(client, server)
	<-sent
}

// copyAll copies until the source's end, and passes the end on.
func copyAll(to, from net.Conn) {
	io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}
