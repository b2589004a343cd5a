// Demo serves the debug page of three upstreams that are at work. In the first
// a peer of weight 10 with max_fails=2 fails twice, again and again.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/trunklb/trunk/contrib/debugpage"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "where to serve; port 0 is a free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	page := debugpage.New(nil)
	stories, err := newStories(page)
	if err != nil {
		return err
	}
	for _, s := range stories {
		go s.goOn(ctx)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/upstreams/", page)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/debug/upstreams/\n", listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
