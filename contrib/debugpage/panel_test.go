package debugpage_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/peer"
)

// The caller goes on to use its Decision.
func TestDecisionsAreCopied(t *testing.T) {
	page := debugpage.New(nil)
	panel := page.Panel("u")
	d := peer.Decision{Method: "m", Key: "k", Peers: []peer.Candidate{{Addr: "a"}, {Addr: "b"}}}
	panel.Decision(&d)
	d.Key, d.Peers[0].Addr = "other", "other"
	got := report(t, page, "").Upstreams[0].Decisions[0]
	equal(t, "key", got.Key, "k")
	equal(t, "addr", got.Peers[0].Addr, "a")
}

func TestOnlyTheLastAreKept(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Picks: 3, Decisions: 5, Events: 2})
	panel := page.Panel("u")
	for i := range 10 {
		panel.Decision(&peer.Decision{Key: fmt.Sprint(i), Time: time.Unix(0, int64(i))})
		panel.Event(peer.Event{Kind: peer.SetChanged, Fails: int64(i), Dropped: 1})
	}
	u := report(t, page, "").Upstreams[0]
	var keys []string
	for _, d := range u.Decisions {
		keys = append(keys, fmt.Sprint(d.Seq, d.Key))
	}
	equal(t, "decisions", strings.Join(keys, ","), "109,98,87")
	equal(t, "seen", u.DecisionsSeen, 10)
	equal(t, "events", len(u.Events), 2)
	equal(t, "dropped", u.EventsDropped, 10)
}

// Hooks run outside the upstream's lock, so that the later may come first.
func TestDecisionsAreSortedByTime(t *testing.T) {
	page := debugpage.New(nil)
	for _, at := range []time.Duration{3, 1, 2, 2} {
		page.Panel("u").Decision(&peer.Decision{Time: time.Unix(0, int64(at)).UTC()})
	}
	var got []int64
	for _, d := range report(t, page, "").Upstreams[0].Decisions {
		got = append(got, d.Time.UnixNano())
	}
	equal(t, "times", fmt.Sprint(got), "[3 2 2 1]")
}

// What makes room is what is well.
func TestPeersOfAPickAreBounded(t *testing.T) {
	well := func(addr string) peer.Candidate {
		return peer.Candidate{Addr: addr, Weight: 1, EffectiveAfter: 1}
	}
	out := func(addr string) peer.Candidate {
		return peer.Candidate{Addr: addr, Weight: 1, EffectiveAfter: 1, Verdict: peer.FailedOut}
	}
	for _, tt := range []struct {
		name   string
		most   int
		peers  []peer.Candidate
		winner int
		want   string
	}{
		{"room for all", 3, []peer.Candidate{well("a"), well("b"), well("c")}, 1, "a b* c"},
		{"the first, and the winner", 2, []peer.Candidate{well("a"), well("b"), well("c")}, 2, "a c*"},
		{"trouble before others", 2, []peer.Candidate{well("a"), well("b"), out("c")}, 1, "b* c"},
		{"more trouble than room", 2, []peer.Candidate{out("a"), out("b"), well("c")}, 2, "a c*"},
		{"only the winner", 1, []peer.Candidate{out("a"), well("b"), well("c")}, 1, "b*"},
		{"nobody won", 2, []peer.Candidate{well("a"), out("b"), out("c")}, -1, "b c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			page := debugpage.New(&debugpage.Options{Peers: tt.most})
			page.Panel("u").Decision(&peer.Decision{Winner: tt.winner, Peers: tt.peers})
			d := report(t, page, "").Upstreams[0].Decisions[0]
			var got []string
			for n, c := range d.Peers {
				if n == d.Winner {
					c.Addr += "*"
				}
				got = append(got, c.Addr)
			}
			equal(t, "kept", strings.Join(got, " "), tt.want)
			equal(t, "left out", d.LeftOut, len(tt.peers)-len(got))
		})
	}
}

// An upstream without live peers says so at each request.
func TestSameEventsAreCounted(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Events: 4})
	s := newStory(t, page.Panel("u"), nil, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	s.picks(100, "a")
	s.picks(1, "b")
	for range 1000 {
		s.get(s.begin(&peer.Request{}))
	}
	var got []string
	for _, e := range report(t, page, "").Upstreams[0].Events {
		got = append(got, fmt.Sprintf("%s %s %d", e.Peer.Server.Addr, e.Kind, e.Times))
	}
	if len(got) == 0 || !strings.HasPrefix(got[0], " no live peers 100") {
		t.Error(got)
	}
	equal(t, "events", len(got), 4)
	reason := parse(t, page, "").all("ol", "class", "events")[0].all("pre", "", "")
	equal(t, "reasons", len(reason), 1)
	if facts := parse(t, page, "").all("p", "class", "facts")[0].text(); !strings.Contains(facts, "1,001 without live peers") {
		t.Error(facts)
	}
	if !strings.Contains(reason[0].text(), "b weight=1: failed 1 of 1") {
		t.Error(reason[0].text())
	}
}

// What came of looking names up is told by name: each change, and failures by count.
func TestLookups(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Peers: 2})
	panel := page.Panel("u")
	panel.Event(peer.Event{Kind: peer.NamesChanged, Lookup: &peer.Lookup{Host: "app", Added: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, Removed: []string{"::1"}}})
	for _, host := range []string{"app", "app", "other"} {
		panel.Event(peer.Event{Kind: peer.LookupFailed, Lookup: &peer.Lookup{Host: host, Err: errors.New("no such host")}})
	}
	var got []string
	for _, e := range parse(t, page, "").all("ol", "class", "events")[0].all("li", "", "") {
		got = append(got, strings.Join(strings.Fields(e.text()), " "))
	}
	equal(t, "events", len(got), 3)
	for i, want := range []string{"other no such host", "app no such host", "app +10.0.0.1 +10.0.0.2 \u2212::1"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("%q is not in %q", want, got[i])
		}
	}
	equal(t, "times", report(t, page, "").Upstreams[0].Events[1].Times, 2)
}

// Hooks, readers and changes of the set at the same time: for the race detector.
func TestConcurrently(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Picks: 16, Events: 4})
	panel := page.Panel("u")
	up, err := peer.New([]peer.Server{{Addr: "a", MaxFails: 3}, {Addr: "b"}}, nil, &peer.Options{OnEvent: panel.Event})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			var r peer.Request
			var d peer.Decision
			for i := range 300 {
				if up.Begin(&r) == nil && up.Explain(&r, &d) == nil {
					_ = up.Free(&r, peer.Outcome(i%4))
				}
				panel.Decision(&d)
			}
		})
		all.Go(func() {
			for range 20 {
				panel.Watch(up)
				ask(t, page, "?q=a")
				ask(t, page, "?format=json")
				page.Panel(fmt.Sprint(w))
				page.Remove(fmt.Sprint(w))
			}
		})
		all.Go(func() {
			for i := range 50 {
				if err := up.Update([]peer.Server{{Addr: "a", Weight: 1 + i%3}, {Addr: fmt.Sprint("b", w)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A decision costs a copy into memory that is there already.
func TestDecisionsAllocateNothing(t *testing.T) {
	panel := debugpage.New(&debugpage.Options{Picks: 8}).Panel("u")
	d := peer.Decision{Method: "round robin", Peers: make([]peer.Candidate, 10)}
	for range 8 {
		panel.Decision(&d)
	}
	equal(t, "allocations", testing.AllocsPerRun(100, func() { panel.Decision(&d) }), 0)
}

func BenchmarkDecision(b *testing.B) {
	panel := debugpage.New(nil).Panel("u")
	d := peer.Decision{Method: "round robin", Key: "/some/key", Peers: make([]peer.Candidate, 10)}
	b.ReportAllocs()
	for b.Loop() {
		panel.Decision(&d)
	}
}
