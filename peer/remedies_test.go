package peer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
)

// Policies under which nothing differs as long as no peer fails, returns or is added.
var quietPolicies = map[string]peer.Policy{
	"recovery":   {Recovery: time.Minute},
	"slow start": {SlowStart: time.Minute},
	"all": {Penalty: .5, Recovery: time.Minute, Window: time.Minute, KeepLast: true, LeastBad: true, BoundTries: true,
		Forgive: true, SlowStart: time.Minute},
}

// byWeight draws a peer by its weight, as a method of one's own would.
type byWeight struct{}

func (byWeight) Describe() peer.Description { return peer.Description{} }

func (m byWeight) Build(s *peer.Set) (peer.Selector, error) {
	next := int64(0)
	return peer.Selector{Pick: func(g *peer.Group, r *peer.Request, now peer.Now) int {
		at := next % g.TotalWeight()
		next++
		for i := range g.Len() {
			if at -= g.Weight(i); at < 0 {
				return i
			}
		}
		return peer.None
	}}, nil
}

// Weights are the configured ones to a method, whatever the policy counts in.
func TestWeightsOfAMethodAreAsConfigured(t *testing.T) {
	servers := []peer.Server{{Addr: "a", Weight: 5}, {Addr: "b", Weight: 3}, {Addr: "c", Weight: 2}}
	for name, policy := range quietPolicies {
		u, err := peer.New(servers, byWeight{}, &peer.Options{Policy: policy})
		require.NoError(t, err)
		got := map[string]int{}
		for range 1000 {
			got[pickAndFree(t, u, func(*peer.Request) {})]++
		}
		require.Equal(t, map[string]int{"a": 500, "b": 300, "c": 200}, got, name)
	}
}

// A policy that has had nothing to do changes no pick, whatever the weights.
func TestQuietPoliciesChangeNoPick(t *testing.T) {
	const great = 1<<31 - 1
	const years = 100_000 * time.Hour // in which no average ages
	servers := []peer.Server{{Addr: "a", Weight: great, FailTimeout: years}, {Addr: "b", Weight: great - 1, FailTimeout: years},
		{Addr: "c", Weight: great / 2, FailTimeout: years}}
	picks := func(p peer.Policy) (list []string) {
		now := 1_800_000_000 * time.Second
		u, err := peer.New(servers, leasttime.New(leasttime.LastByte), &peer.Options{Policy: p, Clock: func() time.Duration { return now }})
		require.NoError(t, err)
		// The slow times are learned one by one; then so many requests are held that the
		// products of least_time come near the end of 63 bits.
		for range 30 {
			list = append(list, pickAndFree(t, u, func(r *peer.Request) {
				now += 10 * time.Second
				require.NoError(t, u.Header(r))
			}))
		}
		for range 4000 {
			r := &peer.Request{}
			require.NoError(t, u.Begin(r))
			require.NoError(t, u.Get(r))
			p, _ := u.Peer(r)
			list = append(list, p.Server.Addr)
		}
		return list
	}
	want := picks(peer.Policy{})
	for name, policy := range quietPolicies {
		require.Equal(t, want, picks(policy), name)
	}
}

// pickAndFree makes one request that goes well, and returns the peer's address.
func pickAndFree(t *testing.T, u *peer.Upstream, answer func(*peer.Request)) string {
	var r peer.Request
	require.NoError(t, u.Begin(&r))
	require.NoError(t, u.Get(&r))
	p, ok := u.Peer(&r)
	require.True(t, ok)
	answer(&r)
	require.NoError(t, u.Free(&r, peer.OK))
	return p.Server.Addr
}
