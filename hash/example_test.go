package hash_test

import (
	"fmt"
	"strings"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/peer"
)

// On the ring, when a server goes only its own keys move.
func Example() {
	where := func(servers ...peer.Server) {
		up, err := peer.New(servers, hash.NewConsistent("$arg_user"), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		var places []string
		for _, user := range []string{"ann", "bob", "dan", "eve", "iris"} {
			r := peer.Request{Key: user}
			if up.Begin(&r) != nil || up.Get(&r) != nil {
				return
			}
			p, _ := up.Peer(&r)
			places = append(places, user+":"+p.Server.Addr)
			_ = up.Free(&r, peer.OK)
		}
		fmt.Println(strings.Join(places, " "))
	}
	a, b, c := peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "c"}
	where(a, b, c)
	where(a, c)
	// Output:
	// ann:c bob:c dan:a eve:a iris:b
	// ann:c bob:c dan:a eve:a iris:c
}
