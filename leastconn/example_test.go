package leastconn_test

import (
	"fmt"

	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

// Requests that go on hold their peers; the next one gets the peer with the
// fewest for its weight.
func Example() {
	up, err := peer.New([]peer.Server{
		{Addr: "a", Weight: 3},
		{Addr: "b"},
	}, leastconn.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	requests := make([]peer.Request, 8)
	for i := range requests {
		r := &requests[i]
		if up.Begin(r) != nil || up.Get(r) != nil {
			return
		}
		p, _ := up.Peer(r)
		fmt.Print(p.Server.Addr, " ")
	}
	// Output: a b a a a b a a
}
