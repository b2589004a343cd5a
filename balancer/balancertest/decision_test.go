package balancertest_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/balancertest"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

// The decision that the kit tells is the one that peer itself records.
func TestDecisionsAreThoseOfPeer(t *testing.T) {
	servers := []balancer.Server{
		{Addr: "a", Weight: 5, MaxFails: 2}, {Addr: "b", Weight: 2}, {Addr: "c", Down: true}, {Addr: "d", MaxFails: balancer.NoMaxFails},
		{Addr: "e", Backup: true}, {Addr: "f", Backup: true, Weight: 3},
	}
	for _, method := range []peer.Method{nil, leastconn.New()} {
		lb := balancertest.NewConfig(t, balancer.Config{Servers: servers, Method: method, Source: rand.NewPCG(5, 6)})
		up, err := peer.New(servers, method, &peer.Options{
			Source: rand.NewPCG(5, 6),
			Clock:  func() time.Duration { return time.Duration(lb.Now().UnixNano()) },
		})
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(7, 8))
		for range 400 {
			var r peer.Request
			var d peer.Decision
			require.NoError(t, up.Begin(&r))
			err := up.Explain(&r, &d)
			want := balancertest.NoPeer
			if err == nil {
				p, _ := up.Peer(&r)
				want = p.Server.Addr
			}
			outcome := peer.OK
			switch rng.IntN(3) {
			case 0:
				outcome = peer.Failed
				if want != balancertest.NoPeer {
					lb.Fail(want) // is the very next pick
					break
				}
				fallthrough
			default:
				require.Equal(t, want, lb.Pick())
			}
			require.Equal(t, d.String(), lb.Decision().String())
			if !errors.Is(err, peer.ErrNoLivePeers) {
				require.NoError(t, up.Free(&r, outcome))
			}
			lb.Advance(time.Duration(rng.IntN(4)) * time.Second)
		}
	}
}
