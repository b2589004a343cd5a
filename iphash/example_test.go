package iphash_test

import (
	"fmt"
	"net/netip"

	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/peer"
)

// Clients of one /24 share a peer.
func Example() {
	up, err := peer.New([]peer.Server{{Addr: "a"}, {Addr: "b"}, {Addr: "c"}}, iphash.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, client := range []string{"192.0.2.1", "192.0.2.200", "10.0.7.1", "2001:db8::1"} {
		r := peer.Request{Client: netip.MustParseAddr(client)}
		if up.Begin(&r) != nil || up.Get(&r) != nil {
			return
		}
		p, _ := up.Peer(&r)
		fmt.Println(client, p.Server.Addr)
		_ = up.Free(&r, peer.OK)
	}
	// Output:
	// 192.0.2.1 a
	// 192.0.2.200 a
	// 10.0.7.1 b
	// 2001:db8::1 c
}
