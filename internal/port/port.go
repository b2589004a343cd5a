// Package port gives tests a TCP port that stays theirs.
//
// A port without a listener is not free for long: the kernel gives it to the next
// outgoing connection or listener of any process. A peer that is to refuse would answer
// then, and one that is to come back could not.
package port

import (
	"fmt"
	"net"
)

// Port is a port of all the loopback's addresses. It has no listener, so that it
// refuses connections, except while a listener of its own is open.
type Port struct {
	number  int
	release func()
}

// New takes a port, until Close.
func New() (*Port, error) {
	number, release, err := hold()
	if err != nil {
		return nil, err
	}
	return &Port{number, release}, nil
}

// Number is the port's number.
func (p *Port) Number() int { return p.number }

// Addr is the port of 127.0.0.1.
func (p *Port) Addr() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }

// Listen listens at Addr. It can be called again when that listener is closed.
func (p *Port) Listen() (*net.TCPListener, error) { return p.ListenAt("127.0.0.1") }

// ListenAt listens at the port of another address of the loopback.
func (p *Port) ListenAt(ip string) (*net.TCPListener, error) {
	return net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(ip), Port: p.number})
}

// Close gives the port back. Its listeners are not closed.
func (p *Port) Close() { p.release() }
