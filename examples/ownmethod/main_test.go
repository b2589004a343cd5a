package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer/balancertest"
	"github.com/trunklb/trunk/peer"
)

// newLab is an upstream of a, b, c and the backup d that report loads.
func newLab(t *testing.T, a, b, c int64) (*balancertest.LB, loads) {
	l := loads{"a:80": {}, "b:80": {}, "c:80": {}, "d:80": {}}
	for addr, load := range map[string]int64{"a:80": a, "b:80": b, "c:80": c} {
		l[addr].Store(load)
	}
	config := balancertest.Config(t, `upstream u { server a:80; server b:80 max_fails=1; server c:80; server d:80 backup; }`)
	config.Method = &ByLoad{l}
	return balancertest.NewConfig(t, config), l
}

// Of two the busier one loses: so the busiest of three gets nothing, and the idlest gets
// all pairs that it is in, which is two of three.
func TestTheIdlestOfThree(t *testing.T) {
	lb, loads := newLab(t, 0, 5, 9)
	lb.WantShare(3000, "a:80", 2.0/3, .03)
	lb.WantShare(300, "c:80", 0, 0)
	require.Contains(t, lb.Decision().String(), "less load of two drawn")
	require.Contains(t, lb.Decision().String(), "c:80 weight=1: conns 0, cw 0, load 9")
	require.Equal(t, "two by load", lb.Decision().Method)

	loads["a:80"].Store(10)
	lb.WantShare(3000, "b:80", 2.0/3, .03)
}

// What keeps a peer from everyone keeps it from this method, and the backup comes last.
func TestOthersWhenPeersFail(t *testing.T) {
	lb, _ := newLab(t, 0, 0, 0)
	lb.Fail("a:80")
	lb.WantShare(300, "a:80", 0, 0)
	lb.Fail("b:80")
	lb.WantPicks("c:80 c:80")
	require.Contains(t, lb.Decision().String(), "only one left")
	lb.Fail("c:80")
	lb.WantPicks("d:80 d:80")
}

// A pick allocates nothing.
func TestNoAllocations(t *testing.T) {
	method := &ByLoad{loads{"a:80": {}, "b:80": {}, "c:80": {}}}
	up, err := peer.New([]peer.Server{{Addr: "a:80"}, {Addr: "b:80"}, {Addr: "c:80"}}, method, nil)
	require.NoError(t, err)
	r := &peer.Request{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if up.Begin(r) != nil || up.Get(r) != nil || up.Free(r, peer.OK) != nil {
			t.Fatal("refused")
		}
	}))
}

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	t.Log("\n" + out.String())
	var queues []int
	for _, match := range regexp.MustCompile(`longest queue was (\d+)`).FindAllStringSubmatch(out.String(), -1) {
		n, err := strconv.Atoi(match[1])
		require.NoError(t, err)
		queues = append(queues, n)
	}
	require.Len(t, queues, 2)
	require.Less(t, 10*queues[1], queues[0])
}
