package random_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// With a source of one's own the picks are the same in every run.
func Example() {
	up, err := peer.New([]peer.Server{{Addr: "a", Weight: 3}, {Addr: "b"}},
		random.New(), &peer.Options{Source: rand.NewPCG(1, 2)})
	if err != nil {
		fmt.Println(err)
		return
	}
	var r peer.Request
	for range 12 {
		if up.Begin(&r) != nil || up.Get(&r) != nil {
			return
		}
		p, _ := up.Peer(&r)
		fmt.Print(p.Server.Addr, " ")
		_ = up.Free(&r, peer.OK)
	}
	// Output: b a a a a b a a a a a a
}
