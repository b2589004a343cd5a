package peer_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/roundrobin"
)

// methods are all methods, for what is true of every one.
var methods = []struct {
	name   string
	method peer.Method
}{
	{"round_robin", roundrobin.New()},
	{"least_conn", leastconn.New()},
	{"least_time header", leasttime.New(leasttime.Header)},
	{"least_time last_byte inflight", leasttime.Method{Mode: leasttime.LastByte, Inflight: true}},
	{"hash", hash.New("$uri")},
	{"hash consistent", hash.NewConsistent("$uri")},
	{"ip_hash", iphash.New()},
	{"random", random.New()},
	{"random two", random.NewTwo()},
}

// eachMethod runs a test for every method.
func eachMethod(t *testing.T, test func(*testing.T, peer.Method)) {
	t.Helper()
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) { test(t, m.method) })
	}
}

// keyed gives a request what the methods read of it.
func keyed(r *peer.Request) {
	r.Key, r.Client = "/index.html", netip.MustParseAddr("192.0.2.1")
}

// many makes n servers.
func many(n int) []peer.Server {
	servers := make([]peer.Server, n)
	for i := range servers {
		servers[i] = peer.Server{Addr: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256), Weight: 1 + i%3}
	}
	return servers
}

// Where no peer can be had every method ends in BUSY, and never in a loop: a
// request that goes on and on gets each peer once, and then none.
func TestEveryMethodEndsInBusy(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []string
		gets    int // before BUSY, of the first request and of the next
		next    int
	}{
		{"all are dead", []string{"a", "b weight=5", "c"}, 3, 0},
		{"all are dead, backups too", []string{"a", "b", "c backup", "d backup"}, 4, 0},
		{"all are down", []string{"a down", "b drain", "c down"}, 0, 0},
		{"all are down, backups too", []string{"a down", "b drain", "c backup down"}, 0, 0},
		{"one is left, and is dead", []string{"a down", "b", "c drain"}, 1, 0},
		{"none of them is ever out", []string{"a max_fails=0", "b max_fails=0", "c max_fails=0 backup"}, 3, 3},
		{"the only one is down", []string{"a down"}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachMethod(t, func(t *testing.T, m peer.Method) {
				lb := machine.NewTrial(t, m, test.servers...)
				require.Equal(t, test.gets, gets(lb), "the first request")
				require.Equal(t, test.next, gets(lb), "the next request")
			})
		})
	}
}

// gets is how many peers a request gets, failing on each, before BUSY.
func gets(lb *machine.Trial) int {
	r := lb.Begin(keyed)
	n := 0
	for r.Get() != machine.Busy {
		r.Free(peer.Failed)
		n++
	}
	return n
}

// The same where all are full.
func TestEveryMethodIsBusyWhenAllAreFull(t *testing.T) {
	eachMethod(t, func(t *testing.T, m peer.Method) {
		lb := machine.NewTrial(t, m, "a max_conns=1", "b max_conns=2", "c max_conns=1 backup")
		var held []*machine.Try
		for range 4 {
			r := lb.Begin(keyed)
			require.NotEqual(t, machine.Busy, r.Get())
			held = append(held, r)
		}
		for range 3 {
			require.Equal(t, machine.Busy, lb.One(peer.OK, keyed))
		}
		held[0].Free(peer.OK)
		require.NotEqual(t, machine.Busy, lb.One(peer.OK, keyed), "until one is free")
	})
}

// A single peer is never ejected, and has no retry.
func TestEveryMethodKeepsItsOnlyPeer(t *testing.T) {
	eachMethod(t, func(t *testing.T, m peer.Method) {
		lb := machine.NewTrial(t, m, "a")
		for range 5 {
			r := lb.Begin(keyed)
			require.Equal(t, "a", r.Get())
			r.Free(peer.Failed)
			require.Zero(t, r.Tries())
			require.Zero(t, lb.Of("a").Fails)
		}
	})
}

// Go's zero weight is nginx's default weight, 1: it is not "no traffic".
func TestWeightZeroIsOne(t *testing.T) {
	lb := machine.NewTrialOf(t, nil, []peer.Server{{Addr: "a", Weight: 2}, {Addr: "b"}})
	require.Equal(t, "a b a", lb.Picks(3))

	eachMethod(t, func(t *testing.T, m peer.Method) {
		lb := machine.NewTrialOf(t, m, []peer.Server{{Addr: "a"}, {Addr: "b"}})
		require.Equal(t, 2, gets(lb), "both are used")
	})
}

// A get and a free allocate nothing: with failures, retries through 300 peers
// and a backup group, and the events in between.
func TestNoAllocation(t *testing.T) {
	servers := many(300)
	for i := 250; i < 300; i++ {
		servers[i].Backup = true
	}
	outcomes := []peer.Outcome{peer.Failed, peer.Next, peer.OK, peer.Abandoned}
	eachMethod(t, func(t *testing.T, m peer.Method) {
		for _, stream := range []bool{false, true} {
			lb := machine.NewTrialOf(t, m, servers)
			r := peer.Request{Stream: stream}
			keyed(&r)
			got := 0
			allocs := testing.AllocsPerRun(5, func() {
				got = 0
				must(t, lb.Upstream.Begin(&r))
				for lb.Upstream.Get(&r) == nil {
					must(t, lb.Connected(&r))
					must(t, lb.FirstByte(&r))
					must(t, lb.Header(&r))
					must(t, lb.Free(&r, outcomes[got%4]))
					got++
				}
				lb.Advance(time.Minute)
			})
			require.Zero(t, allocs)
			require.Greater(t, got, 128)
		}
	})
}

// marking is a method that marks its requests, as least_time does, and leaves it at that.
type marking struct{ marks *[]bool }

func (m marking) Build(*peer.Set) (peer.Selector, error) {
	return peer.Selector{Pick: peer.PickAll, Taken: m.taken}, nil
}
func (marking) Describe() peer.Description { return peer.Description{} }
func (m marking) taken(_ *peer.Group, r *peer.Request, _ int, _ peer.Now) {
	*m.marks = append(*m.marks, r.Scratch.InFlight)
	r.Scratch.InFlight = true
}

// What a method's Scratch says of the held peer is new with each get.
func TestScratchOfTheHeldPeer(t *testing.T) {
	marks := []bool{}
	require.Equal(t, "a b BUSY", machine.NewTrial(t, marking{&marks}, "a", "b").Through(peer.Next, nil))
	require.Equal(t, []bool{false, false}, marks)
}

// must is require.NoError without its allocations.
func must(t *testing.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
