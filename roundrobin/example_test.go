package roundrobin_test

import (
	"fmt"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/roundrobin"
)

// Weight 5 is not five in a row.
func Example() {
	up, err := peer.New([]peer.Server{
		{Addr: "a", Weight: 5},
		{Addr: "b"},
		{Addr: "c"},
	}, roundrobin.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var r peer.Request
	for range 7 {
		if up.Begin(&r) != nil || up.Get(&r) != nil {
			return
		}
		p, _ := up.Peer(&r)
		fmt.Print(p.Server.Addr, " ")
		_ = up.Free(&r, peer.OK)
	}
	// Output: a a b a c a a
}
