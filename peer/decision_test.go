package peer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/sticky"
)

// explain is get with the decision's text.
func (u *updatable) explain(r *peer.Request) string {
	d := &peer.Decision{}
	if err := u.Explain(r, d); err != nil {
		require.ErrorIs(u.t, err, peer.ErrNoLivePeers)
	}
	return d.String()
}

func (u *updatable) hold(addr string) *peer.Request {
	for range 1000 {
		r := u.begin()
		if u.get(r) == addr {
			return r
		}
		require.NoError(u.t, u.Free(r, peer.OK))
	}
	require.FailNow(u.t, "never got "+addr)
	return nil
}

// The night once more, as a ticket would have it: two requests in a row go to
// the weight-1 server while its weight-10 neighbour is healthy.
func TestWhyDidThisRequestGoThere(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", Weight: 10, MaxFails: 2}, peer.Server{Addr: "b"})
	for range 2 {
		require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	}
	r := u.begin()
	require.Equal(t, `round robin, try 1 (2 left): b, greatest current weight
  a weight=10: failed 2 of 2, probe in 11s
  b weight=1: conns 0, cw 2+1-1=2  <- taken`, u.explain(r))
	require.NoError(t, u.Free(r, peer.OK))

	u.now += 24 * time.Hour
	r = u.begin()
	require.Equal(t, `round robin, try 1 (2 left): b, greatest current weight
  a weight=10: conns 0, cw -2+1=-1, ew 1 -> 2, failed 2 of 2
  b weight=1: conns 0, cw 2+1-2=1  <- taken`, u.explain(r))
	require.NoError(t, u.Free(r, peer.OK))
}

func TestVerdictsAndRules(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{},
		peer.Server{Addr: "a", MaxConns: 1}, peer.Server{Addr: "b", Down: true}, peer.Server{Addr: "c", Drain: true},
		peer.Server{Addr: "d"}, peer.Server{Addr: "e", Backup: true})
	u.hold("a")
	r := u.begin()
	require.Equal(t, "d", u.get(r))
	require.NoError(t, u.Free(r, peer.Next))
	require.Equal(t, `round robin, try 2 (2 left): e, greatest current weight, a backup
  a weight=1: full, 1 of 1
  b weight=1: down
  c weight=1: draining
  d weight=1: tried
  e weight=1: backup, conns 0, cw 0+1-1=0  <- taken`, u.explain(r))
	require.NoError(t, u.Free(r, peer.Failed))
	require.Equal(t, `round robin, try 3 (1 left): no live upstreams
  e weight=1: backup, tried`, u.explain(r))
}

func TestRulesOfTheMethods(t *testing.T) {
	three := []peer.Server{{Addr: "a"}, {Addr: "b"}, {Addr: "c"}}
	for _, tt := range []struct {
		name    string
		method  peer.Method
		servers []peer.Server
		want    string
	}{
		{"single", nil, three[:1], "a, only peer"},
		{"equals", nil, three, "a, first of equal current weights"},
		{"tie", leastconn.New(), three, "a, tie settled by the trunk"},
		{"least", leastconn.New(), []peer.Server{{Addr: "a"}, {Addr: "x", Down: true}}, "a, least conns/weight"},
		{"hash", hash.New("$uri"), three, "c, hash range"},
		{"ring", hash.NewConsistent("$uri"), three, "c, ring point"},
		{"no key", hash.New("$uri"), three, "left to round robin: first of equal"},
		{"lone peer", random.NewTwo(), []peer.Server{{Addr: "a"}, {Addr: "x", Down: true}}, "21 misses, so round robin: greatest current weight"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := newUpdatable(t, tt.method, peer.Options{}, tt.servers...)
			r := u.begin()
			if tt.name != "no key" {
				r.Key = "/hello"
			}
			require.Contains(t, u.explain(r), tt.want)
		})
	}
}

// The rule is that of this get, not of the one before.
func TestRuleAfterAnotherRule(t *testing.T) {
	u := newUpdatable(t, sticky.Over(leastconn.New()), peer.Options{},
		peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "c", Route: "rc"})
	r := u.begin()
	require.Contains(t, u.explain(r), "a, tie settled by the trunk")
	require.NoError(t, u.Free(r, peer.Failed))
	r.Hint = "rc"
	require.Contains(t, u.explain(r), "c, bound by sticky\n")
}

func TestDecisionAsJSON(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", Weight: 2}, peer.Server{Addr: "b", Down: true})
	d := &peer.Decision{}
	require.NoError(t, u.Explain(u.begin(), d))
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.JSONEq(t, `{"time": "2023-11-14T22:13:20Z", "method": "round robin", "try": 1, "tries_left": 1,
		"winner": 0, "rule": "greatest current weight", "total": 2, "peers": [
		{"addr": "a", "group": 0, "index": 0, "verdict": "considered", "weight": 2, "conns": 0, "max_fails": 1,
		 "cw_before": 0, "cw_after": 0, "ew_before": 2, "ew_after": 2},
		{"addr": "b", "group": 0, "index": 1, "verdict": "down", "weight": 1, "conns": 0, "max_fails": 1,
		 "cw_before": 0, "cw_after": 0, "ew_before": 1, "ew_after": 1}]}`, string(text))
}

// An explained get picks as any other, and its account adds up: who was
// considered, and only they, may have moved; the winner paid what all gained.
func TestDecisionsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var servers []peer.Server
		for i := range rapid.IntRange(2, 20).Draw(t, "peers") {
			servers = append(servers, peer.Server{
				Addr: fmt.Sprint("p", i), Weight: rapid.IntRange(1, 9).Draw(t, "weight"),
				MaxFails: rapid.IntRange(1, 3).Draw(t, "max fails"), MaxConns: rapid.IntRange(0, 2).Draw(t, "max conns"),
				Down:  rapid.IntRange(0, 4).Draw(t, "down") == 0,
				Drain: rapid.IntRange(0, 4).Draw(t, "drain") == 0, Backup: i > 0 && rapid.IntRange(0, 2).Draw(t, "backup") == 0})
		}
		method := rapid.SampledFrom([]peer.Method{nil, leastconn.New(), hash.New("$uri"), hash.NewConsistent("$uri")}).Draw(t, "method")
		u, plain := newUpdatable(t, method, peer.Options{}, servers...), newUpdatable(t, method, peer.Options{}, servers...)
		d := &peer.Decision{}
		for range 30 {
			r, q := u.begin(), plain.begin()
			r.Key = rapid.SampledFrom([]string{"", "/", "/a", "/b"}).Draw(t, "key")
			q.Key = r.Key
			for more := true; more; {
				before := states(u.Upstream)
				err, same := u.Explain(r, d), plain.Get(q)
				require.Equal(t, same, err)
				require.Equal(t, states(plain.Upstream), states(u.Upstream))
				require.Equal(t, err != nil, d.Winner < 0)
				sum, free := int64(0), true
				for n, c := range d.Peers {
					moved := c.CurrentAfter != c.CurrentBefore || c.EffectiveAfter != c.EffectiveBefore
					require.True(t, c.Verdict == peer.Considered || !moved, "%v", d)
					if n != d.Winner {
						sum += c.CurrentAfter - c.CurrentBefore
					}
					free = free && c.CurrentAfter == c.CurrentBefore
				}
				if err != nil {
					require.Equal(t, before, states(u.Upstream))
					break
				}
				w := d.Peers[d.Winner]
				require.Equal(t, peer.Considered, w.Verdict)
				if d.Total == 0 {
					require.True(t, free, "%v", d)
				} else {
					require.Equal(t, d.Total, sum+w.EffectiveBefore, "%v", d)
				}
				p, _ := u.Peer(r)
				require.Equal(t, p.Server.Addr, w.Addr)
				o := rapid.SampledFrom([]peer.Outcome{peer.OK, peer.Failed, peer.Next}).Draw(t, "outcome")
				require.NoError(t, errors.Join(u.Free(r, o), plain.Free(q, o)))
				more = o != peer.OK
			}
			s := time.Duration(rapid.IntRange(0, 12).Draw(t, "s")) * time.Second
			u.now += s
			plain.now += s
		}
	})
}

func TestEventsOfANight(t *testing.T) {
	var log []string
	u := newUpdatable(t, nil, peer.Options{OnEvent: func(e peer.Event) {
		log = append(log, strings.TrimSpace(fmt.Sprint(e.Peer.Server.Addr, " ", e.Kind)))
	}}, peer.Server{Addr: "a", Weight: 10, MaxFails: 2}, peer.Server{Addr: "b", MaxConns: 1})
	for range 2 {
		require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	}
	held := u.hold("b")
	require.Empty(t, u.get(u.begin()))
	require.NoError(t, u.Free(held, peer.OK))
	u.now += 11 * time.Second
	require.NoError(t, u.Free(u.hold("a"), peer.OK))
	u.update(peer.Server{Addr: "a", Weight: 10, MaxFails: 2, Drain: true}, peer.Server{Addr: "c"})
	require.Equal(t, []string{"a failed", "a failed", "a ejected", "b full", "no live peers", "b full", "b full",
		"a probed", "a alive", "set changed", "b idle", "a idle"}, log)
}

func TestEventAsLogAttributes(t *testing.T) {
	var text strings.Builder
	logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	u := newUpdatable(t, nil, peer.Options{OnEvent: func(e peer.Event) { logger.Info("upstream", "trunk", e) }},
		peer.Server{Addr: "a", Weight: 10}, peer.Server{Addr: "b"})
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	require.Equal(t, `level=INFO msg=upstream trunk.event=failed trunk.peer=a trunk.conns=0 trunk.fails=1 trunk.max_fails=1 trunk.ew_before=10 trunk.ew_after=0
level=INFO msg=upstream trunk.event=ejected trunk.peer=a trunk.conns=0 trunk.fails=1 trunk.max_fails=1 trunk.ew_before=10 trunk.ew_after=0
`, text.String())
}

// What the caller notes stands in order among the upstream's own, at its time, with
// attributes of its own.
func TestNotedEvents(t *testing.T) {
	var text strings.Builder
	logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}}))
	var last peer.Event
	u := newUpdatable(t, nil, peer.Options{OnEvent: func(e peer.Event) {
		last = e
		logger.Info("", "trunk", e)
	}}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	u.Internal(glue.Key{}).Hold()
	u.update(peer.Server{Addr: "a"})
	u.now += time.Second
	u.Internal(glue.Key{}).Note(peer.Event{Kind: peer.NamesChanged, Lookup: &peer.Lookup{Host: "app", Service: "http", Added: []string{"10.0.0.1"}, Removed: []string{"10.0.0.2", "::1"}}})
	u.Internal(glue.Key{}).Note(peer.Event{Kind: peer.LookupFailed, Lookup: &peer.Lookup{Host: "app", Err: errors.New("no such host")}})
	u.Internal(glue.Key{}).Release()
	require.Equal(t, `trunk.event="set changed"
trunk.event=idle trunk.peer=b trunk.conns=0 trunk.fails=0 trunk.max_fails=1 trunk.ew_before=0 trunk.ew_after=0
trunk.event="names changed" trunk.host=app trunk.service=http trunk.added=[10.0.0.1] trunk.removed="[10.0.0.2 ::1]"
trunk.event="look-up failed" trunk.host=app trunk.error="no such host"
`, text.String())
	require.Equal(t, u.now, time.Duration(last.Time.UnixNano()))
	data, err := json.Marshal(last.Lookup)
	require.NoError(t, err)
	require.JSONEq(t, `{"host": "app", "error": "no such host"}`, string(data))
	newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a"}).Internal(glue.Key{}).Note(peer.Event{})
}

// The hook may call the upstream, and a panic of it harms nothing: the call does its
// work, the next events come as ever, and the panics are counted.
func TestHookThatCallsAndPanics(t *testing.T) {
	var u *updatable
	events, angry := 0, true
	u = newUpdatable(t, nil, peer.Options{OnEvent: func(peer.Event) {
		events++
		u.Snapshot()
		if angry {
			panic("angry")
		}
	}}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	r := u.hold("a")
	require.NoError(t, u.Free(r, peer.Failed))
	require.Equal(t, 2, events)
	angry = false
	require.NoError(t, u.Free(u.hold("b"), peer.Failed))
	require.Equal(t, 4, events)
	s := u.Snapshot()
	require.EqualValues(t, 2, s.HookPanics)
	require.Regexp(t, "^angry\n", s.HookPanic)
}

// While one caller is in a slow hook the others go on; what finds no room is counted.
func TestSlowHookDropsAndCounts(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	var fails []int64
	var dropped uint64
	first := true
	u := newUpdatable(t, nil, peer.Options{OnEvent: func(e peer.Event) {
		fails = append(fails, e.Fails)
		dropped += e.Dropped
		if first {
			first = false
			entered <- true
			<-leave
		}
	}}, peer.Server{Addr: "a", MaxFails: peer.NoMaxFails}, peer.Server{Addr: "b", Down: true})
	fail := func() {
		r := u.begin()
		if u.Get(r) == nil {
			_ = u.Free(r, peer.Failed)
		}
	}
	done := make(chan bool)
	go func() { fail(); close(done) }()
	<-entered
	for range 3000 {
		fail()
	}
	close(leave)
	<-done
	for range 3 {
		fail()
	}
	require.Equal(t, uint64(3000-1024), dropped)
	require.Len(t, fails, 1+1024+3)
	require.IsIncreasing(t, fails, "in order")
	require.Equal(t, dropped, u.Snapshot().EventsDropped)
}

// Who updates under a lock of his own holds events back: nobody is told before he
// says so, and then all of it, in order.
func TestHeldEvents(t *testing.T) {
	var log []string
	u := newUpdatable(t, nil, peer.Options{OnEvent: func(e peer.Event) {
		log = append(log, strings.TrimSpace(fmt.Sprint(e.Peer.Server.Addr, " ", e.Kind)))
	}}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	u.Internal(glue.Key{}).Hold()
	u.update(peer.Server{Addr: "a"}, peer.Server{Addr: "c"})
	require.NoError(t, u.Free(u.hold("c"), peer.Failed))
	require.Empty(t, log)
	u.Internal(glue.Key{}).Hold()
	u.Internal(glue.Key{}).Release()
	require.Equal(t, []string{"set changed", "b idle", "c failed", "c ejected"}, log, "the first one needs no second")
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	require.Len(t, log, 4)
	u.Internal(glue.Key{}).Release()
	require.Equal(t, []string{"a failed", "a ejected"}, log[4:])
}

func TestSnapshot(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", Weight: 5}, peer.Server{Addr: "b"}, peer.Server{Addr: "c", Backup: true})
	u.hold("b")
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	u.update(peer.Server{Addr: "a", Weight: 5}, peer.Server{Addr: "c", Backup: true})
	s := u.Snapshot()
	require.Equal(t, 2, s.Version)
	require.Len(t, s.Peers, 3)
	a, c, b := s.Peers[0], s.Peers[1], s.Peers[2]
	require.Equal(t, []string{"a", "c", "b"}, []string{a.Server.Addr, c.Server.Addr, b.Server.Addr})
	require.True(t, a.Out)
	require.Equal(t, u.now+11*time.Second, time.Duration(a.OutUntil.UnixNano()))
	require.EqualValues(t, 1, a.Failed)
	require.Equal(t, a.Gets-1, a.OK)
	require.True(t, b.Removed)
	require.EqualValues(t, 1, b.Conns)
	_, err := json.Marshal(s)
	require.NoError(t, err)
}
