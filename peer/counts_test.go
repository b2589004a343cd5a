package peer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

// ledger counts beside an upstream what its Snapshot is to say. A peer that is
// removed and added again is another, with a number of its own.
type ledger struct {
	requests, retries, none uint64
	now                     map[string]int // the present peers' numbers by address
	peers                   []peer.Counts  // by number
	held                    []int          // by number
}

func (l *ledger) update(servers []peer.Server) {
	before := l.now
	l.now = map[string]int{}
	for _, s := range servers {
		n, known := before[s.Addr]
		if !known {
			n = len(l.peers)
			l.peers, l.held = append(l.peers, peer.Counts{}), append(l.held, 0)
		}
		l.now[s.Addr] = n
	}
}

// check compares all that a Snapshot counts, and the identities that it promises.
func (l *ledger) check(t require.TestingT, s peer.Snapshot) {
	require.Equal(t, s.Requests+s.Retries, s.Total.Gets+s.NoLivePeers)
	require.Equal(t, []uint64{l.requests, l.retries, l.none}, []uint64{s.Requests, s.Retries, s.NoLivePeers})
	var leaving, removed peer.Counts
	conns := int64(0)
	for _, p := range s.Peers {
		require.EqualValues(t, p.Gets, p.OK+p.Failed+p.Next+p.Abandoned+uint64(p.Conns))
		conns += p.Conns
		if p.Removed {
			sum(&removed, p.Counts)
		} else {
			require.Equal(t, l.peers[l.now[p.Server.Addr]], p.Counts, p.Server.Addr)
		}
	}
	var total peer.Counts
	present := map[int]bool{}
	for _, n := range l.now {
		present[n] = true
	}
	for n, c := range l.peers {
		sum(&total, c)
		if !present[n] && l.held[n] > 0 {
			sum(&leaving, c)
		}
	}
	require.Equal(t, total, s.Total)
	require.Equal(t, leaving, removed)
	require.EqualValues(t, s.Total.Gets, s.Total.OK+s.Total.Failed+s.Total.Next+s.Total.Abandoned+uint64(conns))
}

func sum(to *peer.Counts, c peer.Counts) {
	to.Gets += c.Gets
	to.OK += c.OK
	to.Failed += c.Failed
	to.Next += c.Next
	to.Abandoned += c.Abandoned
}

// The counters add up after whatever operations, with either engine, and a changed
// set loses none of them.
func TestCountersAddUp(t *testing.T) {
	scanMost := engine.ScanMost
	t.Cleanup(func() { engine.ScanMost = scanMost })
	rapid.Check(t, func(t *rapid.T) {
		engine.ScanMost = rapid.SampledFrom([]int{0, 1000}).Draw(t, "scan most")
		servers := rapid.Custom(func(t *rapid.T) (list []peer.Server) {
			for i, a := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 6, rapid.ID).Draw(t, "addrs") {
				list = append(list, peer.Server{Addr: fmt.Sprint("p", a), MaxConns: rapid.IntRange(0, 2).Draw(t, "max conns"),
					Drain: rapid.IntRange(0, 5).Draw(t, "drain") == 0, Backup: i > 0 && rapid.Bool().Draw(t, "backup")})
			}
			return list
		})
		first := servers.Draw(t, "servers")
		u := newUpdatable(t, rapid.SampledFrom([]peer.Method{nil, leastconn.New()}).Draw(t, "method"), peer.Options{}, first...)
		l := &ledger{}
		l.update(first)
		type request struct {
			*peer.Request
			asked bool
			held  int
		}
		var open, held []*request
		some := func(t *rapid.T, from *[]*request) *request {
			if len(*from) == 0 {
				t.Skip()
			}
			i := rapid.IntRange(0, len(*from)-1).Draw(t, "request")
			r := (*from)[i]
			*from = slices.Delete(*from, i, i+1)
			return r
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) { open = append(open, &request{Request: u.begin()}) },
			"get": func(t *rapid.T) {
				r := some(t, &open)
				if r.asked {
					l.retries++
				} else {
					r.asked = true
					l.requests++
				}
				addr := u.get(r.Request)
				if addr == "" {
					l.none++
					return
				}
				r.held = l.now[addr]
				l.peers[r.held].Gets++
				l.held[r.held]++
				held = append(held, r)
			},
			"free": func(t *rapid.T) {
				r := some(t, &held)
				o := rapid.SampledFrom([]peer.Outcome{peer.OK, peer.Failed, peer.Next, peer.Abandoned}).Draw(t, "outcome")
				require.NoError(t, u.Free(r.Request, o))
				c := &l.peers[r.held]
				*map[peer.Outcome]*uint64{peer.OK: &c.OK, peer.Failed: &c.Failed, peer.Next: &c.Next, peer.Abandoned: &c.Abandoned}[o]++
				l.held[r.held]--
				open = append(open, r)
			},
			"update": func(t *rapid.T) {
				next := servers.Draw(t, "servers")
				u.update(next...)
				l.update(next)
			},
			"": func(t *rapid.T) { l.check(t, u.Snapshot()) },
		})
	})
}

// The names are stable: dashboards read them.
func TestSnapshotAsJSON(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", Weight: 5}, peer.Server{Addr: "b", Down: true})
	r := u.begin()
	require.Equal(t, "a", u.get(r))
	require.NoError(t, u.Free(r, peer.Failed))
	require.Empty(t, u.get(r))
	text, err := json.Marshal(u.Snapshot())
	require.NoError(t, err)
	require.JSONEq(t, `{"time": "2023-11-14T22:13:20Z", "method": "round robin", "version": 1,
		"requests": 1, "retries": 1, "no_live_peers": 1, "total": {"gets": 1, "ok": 0, "failed": 1, "next": 0, "abandoned": 0},
		"events_dropped": 0, "hook_panics": 0, "peers": [
		{"server": {"addr": "a", "name": "a", "weight": 5, "max_fails": 1, "fail_timeout": 10000000000}, "sid": "0cc175b9c0f1b6a831c399e269772661", "group": 0, "index": 0,
		 "cw": 0, "ew": 0, "conns": 0, "fails": 1, "accessed": 1700000000, "checked": 1700000000, "out": true, "out_until": "2023-11-14T22:13:31Z",
		 "gets": 1, "ok": 0, "failed": 1, "next": 0, "abandoned": 0},
		{"server": {"addr": "b", "name": "b", "weight": 1, "max_fails": 1, "fail_timeout": 10000000000, "down": true}, "sid": "92eb5ffee6ae2fec3ad71c777531578f", "group": 0, "index": 1,
		 "cw": 0, "ew": 1, "conns": 0, "fails": 0, "accessed": 0, "checked": 0,
		 "gets": 0, "ok": 0, "failed": 0, "next": 0, "abandoned": 0}]}`, string(text))
}
