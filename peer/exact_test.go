package peer_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

// Great weights and many peers stay exact: the trunk over 10,000 peers of
// weights about 2^31-1, with failures, against the same in numbers of any size.
func TestGreatWeightsAreExact(t *testing.T) {
	const n = 10_000
	servers := make([]peer.Server, n)
	cw, ew, weight := make([]*big.Int, n), make([]*big.Int, n), make([]*big.Int, n)
	for i := range servers {
		w := math.MaxInt32 - i%7
		servers[i] = peer.Server{Addr: fmt.Sprint(i), Weight: w, MaxFails: 3}
		cw[i], ew[i], weight[i] = new(big.Int), big.NewInt(int64(w)), big.NewInt(int64(w))
	}
	lb := machine.NewTrialOf(t, nil, servers)
	one := big.NewInt(1)
	for pick := range 60 {
		best, total := 0, new(big.Int)
		for i := range n {
			cw[i].Add(cw[i], ew[i])
			total.Add(total, ew[i])
			if ew[i].Cmp(weight[i]) < 0 {
				ew[i].Add(ew[i], one)
			}
			if cw[i].Cmp(cw[best]) > 0 {
				best = i
			}
		}
		cw[best].Sub(cw[best], total)

		outcome := peer.OK
		if pick%3 == 0 {
			outcome = peer.Failed
			ew[best].Sub(ew[best], big.NewInt(int64(servers[best].Weight/3)))
		}
		require.Equal(t, servers[best].Addr, lb.One(outcome, nil), "pick %d", pick)
	}
	for i := range n {
		s := lb.State(peer.Primary, i)
		if cw[i].Cmp(big.NewInt(s.CurrentWeight)) != 0 || ew[i].Cmp(big.NewInt(s.EffectiveWeight)) != 0 {
			require.Fail(t, "not exact", "peer %d: current weight %d, effective weight %d; want %v, %v",
				i, s.CurrentWeight, s.EffectiveWeight, cw[i], ew[i])
		}
	}
}

// conns / w is compared exactly: 2/(2^31-1) is less than 2/(2^31-2).
func TestGreatWeightsCompareExactly(t *testing.T) {
	lb := machine.NewTrialOf(t, leastconn.New(), []peer.Server{
		{Addr: "light", Weight: math.MaxInt32 - 1}, {Addr: "heavy", Weight: math.MaxInt32}})
	for held := range 100 {
		_, name := lb.Hold()
		// At equal conns the heavy one is less loaded, by less than a billionth;
		// when it has one more, the light one is. At first they are tied at zero.
		require.Equal(t, []string{"heavy", "light"}[held%2], name, "with %d held", held)
	}
}
