package leasttime_test

import (
	"fmt"
	"time"

	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
)

// Peer a takes 300 ms to its header and b 40: once that is known, b is asked.
func Example() {
	now := 1_700_000_000 * time.Second
	up, err := peer.New([]peer.Server{{Addr: "a"}, {Addr: "b"}},
		leasttime.New(leasttime.Header), &peer.Options{Clock: func() time.Duration { return now }})
	if err != nil {
		fmt.Println(err)
		return
	}
	takes := map[string]time.Duration{"a": 300 * time.Millisecond, "b": 40 * time.Millisecond}

	var r peer.Request
	for range 5 {
		if up.Begin(&r) != nil || up.Get(&r) != nil {
			return
		}
		p, _ := up.Peer(&r)
		fmt.Print(p.Server.Addr, " ")
		now += takes[p.Server.Addr]
		_ = up.Header(&r)
		_ = up.Free(&r, peer.OK)
	}
	// Output: a b b b b
}
