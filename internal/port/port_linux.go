package port

import (
	"net"
	"os"
	"syscall"
)

// hold binds a socket that never listens. Linux lets a second socket with SO_REUSEADDR,
// which Go's listeners have, listen at the same port.
func hold() (number int, release func(), err error) {
	fd, err := bound(0)
	if err != nil {
		return 0, nil, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		syscall.Close(fd)
		return 0, nil, os.NewSyscallError("getsockname", err)
	}
	return name.(*syscall.SockaddrInet4).Port, func() { syscall.Close(fd) }, nil
}

func bound(number int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: number})
	}
	if err != nil {
		syscall.Close(fd)
		return 0, os.NewSyscallError("bind", err)
	}
	return fd, nil
}

// Deaf is a listener whose accept queue is full, so that Linux drops every SYN: a
// connection to it gets no answer at all.
type Deaf struct {
	fd     int
	filler net.Conn
}

// ListenDeaf makes the port deaf, until Close.
func (p *Port) ListenDeaf() (*Deaf, error) {
	fd, err := bound(p.number)
	if err != nil {
		return nil, err
	}
	// A backlog of 0 has room for one connection.
	if err := syscall.Listen(fd, 0); err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("listen", err)
	}
	filler, err := net.Dial("tcp4", p.Addr())
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return &Deaf{fd: fd, filler: filler}, nil
}

// Close ends the deafness: connections are refused again.
func (d *Deaf) Close() {
	d.filler.Close()
	syscall.Close(d.fd)
}
