//go:build !linux

package port

import "net"

// hold finds a port that is free now. Elsewhere than on Linux it cannot be held.
func hold() (number int, release func(), err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	return l.Addr().(*net.TCPAddr).Port, func() {}, l.Close()
}
