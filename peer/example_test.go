package peer_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/trunklb/trunk/peer"
)

// One request after the other, on a clock of one's own: a has most of the
// weight; then it fails, and is out for its fail timeout.
func Example() {
	now := 1_700_000_000 * time.Second
	up, err := peer.New([]peer.Server{
		{Addr: "a:80", Weight: 5},
		{Addr: "b:80"},
		{Addr: "c:80", Backup: true},
	}, nil, &peer.Options{Clock: func() time.Duration { return now }})
	if err != nil {
		fmt.Println(err)
		return
	}

	// A request that fails on every primary peer ends at the backup.
	r := &peer.Request{}
	if err := up.Begin(r); err != nil {
		fmt.Println(err)
		return
	}
	for up.Get(r) == nil {
		p, _ := up.Peer(r)
		if p.Group == peer.Primary {
			fmt.Println(p.Server.Addr, "fails")
			_ = up.Free(r, peer.Failed)
			continue
		}
		fmt.Println(p.Server.Addr, "answers")
		_ = up.Free(r, peer.OK)
		break
	}

	s := up.State(peer.Primary, 0)
	fmt.Println("a:80 has", s.Fails, "failure and effective weight", s.EffectiveWeight)
	// Output:
	// a:80 fails
	// b:80 fails
	// c:80 answers
	// a:80 has 1 failure and effective weight 0
}

// A configuration error names the server, the field and its value.
func ExampleConfigError() {
	_, err := peer.New([]peer.Server{{Addr: "a:80"}, {Addr: "b:80", Weight: -1}}, nil, nil)
	fmt.Println(err)

	var refused *peer.ConfigError
	if errors.As(err, &refused) {
		fmt.Println(refused.Server, refused.Field, refused.Value)
	}
	// Output:
	// trunk: servers[1].Weight: must be at least 1; 0 means 1 (got -1)
	// 1 Weight -1
}
