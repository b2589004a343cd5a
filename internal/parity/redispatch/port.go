//go:build linux

package redispatch

import (
	"fmt"
	"net"
	"syscall"
)

// port is a port of 127.0.0.1 that stays ours whether somebody listens on it or
// not. Many scenarios run side by side, and a port that merely is not listened on
// would soon be given to another: a peer that must refuse would answer.
//
// It is held by a socket that is bound but never listens. Linux lets a second
// socket with SO_REUSEADDR, which Go's listeners have, listen on the same port.
type port struct {
	number int
	fd     int
}

var loopback = [4]byte{127, 0, 0, 1}

func newPort() (*port, error) {
	fd, err := boundSocket(0)
	if err != nil {
		return nil, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("redispatch: getsockname: %w", err)
	}
	return &port{number: name.(*syscall.SockaddrInet4).Port, fd: fd}, nil
}

func boundSocket(number int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("redispatch: socket: %w", err)
	}
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: number, Addr: loopback})
	}
	if err != nil {
		syscall.Close(fd)
		return 0, fmt.Errorf("redispatch: bind: %w", err)
	}
	return fd, nil
}

func (p *port) addr() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }

func (p *port) listen() (*net.TCPListener, error) {
	return net.ListenTCP("tcp4", &net.TCPAddr{IP: loopback[:], Port: p.number})
}

func (p *port) close() { syscall.Close(p.fd) }

// deaf listens on a port with an accept queue that is full, so that Linux drops
// every SYN: a connect to it gets no answer at all.
type deaf struct {
	fd     int
	filler net.Conn
}

func (p *port) listenDeaf() (*deaf, error) {
	fd, err := boundSocket(p.number)
	if err != nil {
		return nil, err
	}
	// A backlog of 0 has room for one connection.
	if err := syscall.Listen(fd, 0); err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("redispatch: listen: %w", err)
	}
	filler, err := net.Dial("tcp4", p.addr())
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return &deaf{fd: fd, filler: filler}, nil
}

func (d *deaf) close() {
	d.filler.Close()
	syscall.Close(d.fd)
}
