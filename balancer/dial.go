package balancer

import (
	"context"
	"errors"
	"net"
	"time"
)

// A dialError is a connection that did not come about: nothing was sent.
type dialError struct{ err error }

// errNoConn is a dial function that returns neither.
var errNoConn = errors.New("the dial function returned (nil, nil)")

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dialFunc is http.Transport.DialContext.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// plainDial makes a dialFunc of the deprecated Transport.Dial; nil: the standard one.
func plainDial(dial func(network, addr string) (net.Conn, error)) dialFunc {
	if dial == nil {
		return (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	return func(_ context.Context, network, addr string) (net.Conn, error) { return dial(network, addr) }
}

// dialer dials one peer, whatever address it is asked for.
type dialer struct {
	end           *endpoint
	dial          dialFunc
	connect, send time.Duration
}

// DialContext is for http.Transport.
func (d *dialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	network, addr := network(d.end.server().Addr)
	try, _ := ctx.Value(sendingKey{}).(*sending)
	if try != nil {
		try.dialling(nil)
	}
	ctx, cancel := context.WithTimeout(ctx, d.connect)
	defer cancel()
	var c net.Conn
	err := caught("the dial function", func() (err error) { // the goroutine is net/http's
		c, err = d.dial(ctx, network, addr)
		return err
	})
	if err == nil && c == nil {
		err = errNoConn
	}
	if err != nil {
		return nil, &dialError{err}
	}
	own := newConn(c, d.end, d.send)
	if !d.end.opened(own) {
		c.Close()
		return nil, &dialError{errRetired}
	}
	if try != nil {
		try.dialling(own)
	}
	return own, nil
}

// errRetired: a transport was still dialling for a request that has long got
// another connection, and the peer was removed, or the upstream closed, in the meantime.
var errRetired = errors.New("trunk: the peer was removed, or the upstream closed")
