package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
)

// show runs the proxy over three servers of its own, of which one dies.
func show(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var addrs []string
	var servers []net.Listener
	names := map[string]string{} // by address
	for _, name := range []string{"a", "b", "c"} {
		l, err := server(name)
		if err != nil {
			return err
		}
		defer l.Close()
		servers, addrs = append(servers, l), append(addrs, l.Addr().String())
		names[l.Addr().String()] = name
	}
	up, err := newUpstream(ctx, addrs)
	if err != nil {
		return err
	}
	defer up.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go accept(ctx, l, up)

	say := func(when string, n int) error {
		var answers []string
		for range n {
			answer, err := talk(ctx, l.Addr().String())
			if err != nil {
				return err
			}
			answers = append(answers, answer)
		}
		fmt.Fprintf(out, "%-28s %s\n", when, strings.Join(answers, " "))
		return nil
	}
	if err := say("three servers:", 9); err != nil {
		return err
	}
	servers[1].Close()
	if err := say("b has died:", 9); err != nil {
		return err
	}
	for _, s := range up.Snapshot().Peers {
		fmt.Fprintf(out, "%s: failed %d\n", names[s.Server.Addr], s.Fails)
	}
	fmt.Fprintln(out, "\nEvery connection was answered. b was asked once after it had died, and is left\nalone for ten seconds.")
	return nil
}

// server answers each connection with its name and what it has read.
func server(name string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				text, _ := io.ReadAll(c)
				fmt.Fprint(c, name, string(text))
			}()
		}
	}()
	return l, nil
}

// talk sends an exclamation mark through the proxy, and returns the answer.
func talk(ctx context.Context, addr string) (string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	fmt.Fprint(c, "!")
	c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	if err == nil && len(answer) == 0 {
		err = fmt.Errorf("no answer")
	}
	return string(answer), err
}
