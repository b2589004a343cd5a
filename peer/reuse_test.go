package peer_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// A Request that is begun again is a new one: of what the method knew of the one before,
// misses and hashes, nothing is left. Most servers are down, so that misses are many: more than
// 20 leave a request to round robin.
func TestARequestBegunAgainIsNew(t *testing.T) {
	for name, m := range map[string]peer.Method{"hash": hash.New("k"), "hash consistent": hash.NewConsistent("k"), "hash of the whole range": hash.Method{Key: "k", WholeRange: true},
		"ip_hash": iphash.New(), "ip_hash of the whole range": iphash.Method{WholeRange: true}, "random": random.New(), "random two": random.NewTwo()} {
		t.Run(name, func(t *testing.T) {
			servers := make([]peer.Server, 40)
			for i := range servers {
				servers[i] = peer.Server{Addr: fmt.Sprint(i), Down: i%10 > 0}
			}
			used := newUpdatable(t, m, peer.Options{Source: rand.NewPCG(1, 1)}, servers...)
			fresh := newUpdatable(t, m, peer.Options{Source: rand.NewPCG(1, 1)}, servers...)
			again := new(peer.Request)
			missed := false
			for i := range 200 {
				var picks [2]string
				for j, u := range []*updatable{used, fresh} {
					r := again
					if j == 1 {
						r = new(peer.Request)
					}
					r.Key, r.Client = fmt.Sprint("key ", i), netip.AddrFrom4([4]byte{192, 0, byte(i), 1})
					require.NoError(t, u.Begin(r))
					d := new(peer.Decision)
					require.NoError(t, u.Explain(r, d))
					require.NoError(t, u.Free(r, peer.OK))
					picks[j] = d.String()
					missed = missed || d.Misses > 20
				}
				require.Equal(t, picks[1], picks[0], "request %d", i)
			}
			require.True(t, missed, "this test is of misses")
		})
	}
}
