package peer_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/peer"
)

// night lets a (weight 10, max_fails 2) fail twice beside b (weight 1); a day
// later everything is well again. It returns b's share of the first 11, 50
// and 200 requests of that morning.
func night(t *testing.T, policy peer.Policy) (shares [3]int) {
	u := newUpdatable(t, nil, peer.Options{Policy: policy},
		peer.Server{Addr: "a", Weight: 10, MaxFails: 2}, peer.Server{Addr: "b"})
	for range 2 {
		r := u.begin()
		require.Equal(t, "a", u.get(r))
		require.NoError(t, u.Free(r, peer.Failed))
		require.Equal(t, "b", u.get(r))
		require.NoError(t, u.Free(r, peer.OK))
	}
	u.now += 24 * time.Hour
	picks := strings.Fields(u.picks(200))
	for i, n := range []int{11, 50, 200} {
		shares[i] = strings.Count(strings.Join(picks[:n], " "), "b")
	}
	return shares
}

// 10:1 would be 1, 5 and 18. nginx's debt of two requests stays for ever.
func TestTheMorningAfter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy peer.Policy
		want   [3]int
	}{
		{"nginx", peer.Policy{}, [3]int{3, 6, 20}},
		{"recovery by time", peer.Policy{Recovery: time.Minute}, [3]int{1, 5, 18}},
		{"debt forgiven", peer.Policy{Forgive: true}, [3]int{3, 6, 20}},
		{"both", peer.Policy{Recovery: time.Minute, Forgive: true}, [3]int{1, 4, 18}},
		{"penalty of a tenth", peer.Policy{Penalty: 0.1}, [3]int{1, 5, 18}},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, night(t, tt.policy)) })
	}
}

// w / max_fails is nothing for small weights, so that max_fails has two
// meanings. A penalty of its own has one.
func TestPenaltyParted(t *testing.T) {
	for _, tt := range []struct {
		weight, maxFails int
		penalty          float64
		want             int64 // of the effective weight after one failure
	}{
		{1, 2, 0, 1}, {3, 5, 0, 3}, {10, 2, 0, 5}, {10, peer.NoMaxFails, 0, 10},
		{1, 2, 0.5, 0}, {3, 5, 0.5, 2}, {10, 2, 0.5, 5}, {10, peer.NoMaxFails, 0.5, 5}, {10, 2, 1, 0}, {10, 2, 0.01, 9},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Penalty: tt.penalty}},
				peer.Server{Addr: "a", Weight: tt.weight, MaxFails: tt.maxFails}, peer.Server{Addr: "b"})
			r := u.begin()
			require.Equal(t, "a", u.get(r))
			require.NoError(t, u.Free(r, peer.Failed))
			require.Equal(t, tt.want, u.State(peer.Primary, 0).EffectiveWeight)
		})
	}
}

func TestRecoveryIsEvenInTimeWhateverTheTraffic(t *testing.T) {
	for _, perSecond := range []int{1, 100} {
		t.Run(fmt.Sprint(perSecond, " per second"), func(t *testing.T) {
			u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Recovery: 100 * time.Second}},
				peer.Server{Addr: "a", Weight: 100, MaxFails: 2}, peer.Server{Addr: "b", Weight: 100})
			r := u.begin()
			require.Equal(t, "a", u.get(r))
			require.NoError(t, u.Free(r, peer.Failed))
			for s := 1; s <= 101; s++ {
				u.now += time.Second
				u.picks(perSecond)
				require.Equal(t, min(50+int64(s)/2, 100), u.State(peer.Primary, 0).EffectiveWeight, "after %d s", s)
			}
		})
	}
}

// A failure on the way back weakens from where the peer has got to.
func TestFailureDuringRecovery(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Recovery: 100 * time.Second}},
		peer.Server{Addr: "a", Weight: 100, MaxFails: 4}, peer.Server{Addr: "b"})
	fail := func() int64 {
		r := u.begin()
		for u.get(r) != "a" {
			require.NoError(t, u.Free(r, peer.OK))
			r = u.begin()
		}
		require.NoError(t, u.Free(r, peer.Failed))
		return u.State(peer.Primary, 0).EffectiveWeight
	}
	require.EqualValues(t, 75, fail())
	u.now += 40 * time.Second // 75 + 0.4*25 = 85
	require.EqualValues(t, 60, fail())
	u.now += 50 * time.Second // 60 + 0.5*40 = 80
	u.picks(1)
	require.EqualValues(t, 80, u.State(peer.Primary, 0).EffectiveWeight)
}

// So it does when nobody has picked in the meantime.
func TestFailureDuringRecoveryWithoutTraffic(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Recovery: 100 * time.Second}},
		peer.Server{Addr: "a", Weight: 100, MaxFails: 4}, peer.Server{Addr: "b"})
	first, second := u.hold("a"), u.hold("a")
	require.NoError(t, u.Free(first, peer.Failed))
	u.now += 40 * time.Second
	require.NoError(t, u.Free(second, peer.Failed))
	require.EqualValues(t, 60, u.State(peer.Primary, 0).EffectiveWeight, "75 + 0.4*25 - 25")
}

// A clock that goes back takes nobody further down than where he began.
func TestRecoveryWhenTheClockGoesBack(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Recovery: 100 * time.Second}},
		peer.Server{Addr: "a", Weight: 100, MaxFails: 2}, peer.Server{Addr: "b"})
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	u.now -= 80 * time.Second
	u.picks(1)
	require.EqualValues(t, 50, u.State(peer.Primary, 0).EffectiveWeight)
}

// A failure during a slow start takes its penalty, and the slow start begins anew
// from there; one that costs nothing changes nothing.
func TestFailureDuringSlowStart(t *testing.T) {
	for _, tt := range []struct {
		name     string
		maxFails int
		recovery time.Duration
		want     [2]int64 // right after the failure, which is half-way, and 50 s later
	}{
		{"penalty", 5, 0, [2]int64{30, 65}},
		{"no penalty", peer.NoMaxFails, 0, [2]int64{50, 100}},
		{"no penalty, with recovery", peer.NoMaxFails, time.Hour, [2]int64{50, 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := peer.Server{Addr: "a", Weight: 100, MaxFails: tt.maxFails}, peer.Server{Addr: "b"}
			u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Recovery: tt.recovery,
				SlowStart: 100 * time.Second}}, b)
			u.update(a, b)
			u.now += 50 * time.Second
			require.NoError(t, u.Free(u.hold("a"), peer.Failed))
			for i, want := range tt.want {
				u.picks(1)
				require.InDelta(t, want, u.State(peer.Primary, 0).EffectiveWeight, 1, "%d", i)
				u.now += 50 * time.Second
			}
		})
	}
}

func TestSlowStartOfAPeerThatWasOut(t *testing.T) {
	o := peer.Options{Policy: peer.Policy{SlowStart: 100 * time.Second}}
	u := newUpdatable(t, nil, o, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
	out := func() {
		r := u.begin()
		for u.get(r) != "a" {
			require.NoError(t, u.Free(r, peer.OK))
			r = u.begin()
		}
		require.NoError(t, u.Free(r, peer.Failed))
	}
	share := func() int { return strings.Count(u.picks(1000), "a") }
	comeBack := func() {
		u.now += 11 * time.Second
		for range 3 { // one of them is the probe
			u.picks(1)
		}
		require.Zero(t, u.State(peer.Primary, 0).Fails)
	}
	out()
	comeBack()
	for _, at := range []struct {
		after time.Duration
		want  int // of 1000, a's weight being after/100s of b's
	}{{25 * time.Second, 200}, {25 * time.Second, 333}, {25 * time.Second, 429}, {25 * time.Second, 500}} {
		u.now += at.after
		require.InDelta(t, at.want, share(), 10)
	}
	out()
	comeBack()
	require.Less(t, share(), 30, "it begins anew")
}

// With a policy on: whatever happens, a weakened peer that is left alone comes
// back without a step back, and is whole when its time is over; nobody starves.
func TestPolicyPromises(t *testing.T) {
	scanMost := engine.ScanMost
	t.Cleanup(func() { engine.ScanMost = scanMost })
	rapid.Check(t, func(t *rapid.T) {
		engine.ScanMost = rapid.SampledFrom([]int{0, 1000}).Draw(t, "scan most")
		policy := peer.Policy{
			Penalty:   rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(t, "penalty"),
			Recovery:  time.Duration(rapid.IntRange(1, 100).Draw(t, "recovery")) * time.Second,
			Forgive:   rapid.Bool().Draw(t, "forgive"),
			SlowStart: time.Duration(rapid.IntRange(0, 50).Draw(t, "slow start")) * time.Second,
		}
		n := rapid.IntRange(2, 6).Draw(t, "peers")
		var servers []peer.Server
		total := 0
		for i := range n {
			w := rapid.IntRange(1, 9).Draw(t, "weight")
			total += w
			servers = append(servers, peer.Server{Addr: string(rune('a' + i)), Weight: w, MaxFails: rapid.IntRange(1, 3).Draw(t, "max fails")})
		}
		u := newUpdatable(t, nil, peer.Options{Policy: policy}, servers...)
		for range rapid.IntRange(0, 30).Draw(t, "requests") {
			r := u.begin()
			if u.get(r) != "" {
				require.NoError(t, u.Free(r, rapid.SampledFrom([]peer.Outcome{peer.OK, peer.Failed}).Draw(t, "outcome")))
			}
			u.now += time.Duration(rapid.IntRange(0, 12).Draw(t, "s")) * time.Second
		}
		// From here on all is well. Everybody who is out comes back by a probe.
		for range 30 {
			u.now += 11 * time.Second
			u.picks(2 * total)
		}
		for _, s := range states(u.Upstream) {
			require.Zero(t, s.Fails, s.addr)
		}
		before := states(u.Upstream)
		for range 200 {
			u.now += time.Second
			u.picks(1)
			for i, s := range states(u.Upstream) {
				require.GreaterOrEqual(t, s.EffectiveWeight, before[i].EffectiveWeight, s.addr)
				before[i] = s
			}
		}
		for i, s := range states(u.Upstream) {
			require.EqualValues(t, servers[i].Weight, s.EffectiveWeight, s.addr)
		}
		// And then shares are by weight, to the request over a cycle.
		picks := u.picks(total * 10)
		for _, s := range servers {
			require.InDelta(t, s.Weight*10, strings.Count(picks, s.Addr), 3, s.Addr)
		}
	})
}

func TestPolicyIsChecked(t *testing.T) {
	for _, tt := range []struct {
		field  string
		policy peer.Policy
	}{
		{"Policy.Penalty", peer.Policy{Penalty: -0.1}},
		{"Policy.Penalty", peer.Policy{Penalty: 1.1}},
		{"Policy.Penalty", peer.Policy{Penalty: math.NaN()}},
		{"Policy.Recovery", peer.Policy{Recovery: -1}},
		{"Policy.Recovery", peer.Policy{Recovery: time.Microsecond}},
		{"Policy.SlowStart", peer.Policy{SlowStart: -1}},
	} {
		t.Run(fmt.Sprint(tt.field, tt.policy), func(t *testing.T) {
			_, err := peer.New([]peer.Server{{Addr: "a"}}, nil, &peer.Options{Policy: tt.policy})
			var e *peer.ConfigError
			require.ErrorAs(t, err, &e)
			require.Equal(t, tt.field, e.Field)
		})
	}
}

// Fifty fresh processes: without a random start all begin with the first peer;
// with it the first picks are by weight, and each process goes on exactly.
func TestRandomStart(t *testing.T) {
	servers := []peer.Server{{Addr: "a", Weight: 5}, {Addr: "b"}, {Addr: "c"}, {Addr: "d", Backup: true}}
	const processes = 7000
	first := map[string]int{}
	cycles := map[string]bool{}
	for seed := range uint64(processes) {
		u := newUpdatable(t, nil, peer.Options{RandomStart: true, Source: counting(seed)}, servers...)
		picks := u.picks(7)
		first[picks[:1]]++
		cycles[picks] = true
		require.Equal(t, picks, u.picks(7), "the cycle goes on")
	}
	require.InDelta(t, processes*5/7, first["a"], 200)
	require.InDelta(t, processes/7, first["b"], 200)
	require.Len(t, cycles, 7, "every rotation of a a b a c a a, and no other")
}

// counting is a source whose numbers are spread but the same for one seed.
type counting uint64

func (c counting) Uint64() uint64 { return uint64(c+1) * 0x9E3779B97F4A7C15 }

// Three failures within a minute take a out, whatever went well in between;
// nginx forgets them at the first success after ten quiet seconds.
func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		name   string
		window time.Duration
		every  time.Duration // between failures
		want   int64         // failures that count after the third
	}{
		{"nginx, every 15 s", 0, 15 * time.Second, 1},
		{"window of a minute, every 15 s", time.Minute, 15 * time.Second, 3},
		{"window of a minute, every 30 s", time.Minute, 30 * time.Second, 2},
		{"window of a minute, at once", time.Minute, 0, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Window: tt.window}},
				peer.Server{Addr: "a", MaxFails: 3}, peer.Server{Addr: "b"})
			for range 3 {
				u.now += tt.every
				require.NoError(t, u.Free(u.hold("a"), peer.OK))
				require.NoError(t, u.Free(u.hold("a"), peer.Failed))
			}
			s := u.Snapshot().Peers[0]
			require.Equal(t, tt.want, s.Fails)
			require.Equal(t, tt.want == 3, s.Out)
			if s.Out {
				u.now += 11 * time.Second
				require.NoError(t, u.Free(u.hold("a"), peer.OK))
				require.NoError(t, u.Free(u.hold("a"), peer.Failed))
				require.EqualValues(t, 1, u.State(peer.Primary, 0).Fails, "its probe has cleared them")
			}
		})
	}
	_, err := peer.New([]peer.Server{{Addr: "a", MaxFails: 1001}}, nil, &peer.Options{Policy: peer.Policy{Window: time.Minute}})
	var e *peer.ConfigError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "MaxFails", e.Field)
}

// Failures go as they have come, one by one: two within ten seconds take a out, however many
// were longer ago, and a success, after its fail timeout too, takes back none of them.
func TestWindowGoesOn(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Window: 10 * time.Second}},
		peer.Server{Addr: "a", MaxFails: 2, FailTimeout: 3 * time.Second}, peer.Server{Addr: "b"})
	for _, step := range []struct {
		after time.Duration
		out   bool
	}{{0, false}, {16, false}, {16, false}, {16, false}, {5, true}} {
		u.now += step.after * time.Second
		require.NoError(t, u.Free(u.hold("a"), peer.Failed))
		require.Equal(t, step.out, u.Snapshot().Peers[0].Out, "%d s later", step.after)
		u.now += 4 * time.Second
		if !step.out {
			require.NoError(t, u.Free(u.hold("a"), peer.OK))
			require.EqualValues(t, 1, u.State(peer.Primary, 0).Fails)
		}
	}
}

// A request in trouble goes on to the last peer, however bad; without KeepLast
// to nobody.
func TestKeepLast(t *testing.T) {
	for keep, want := range map[bool]string{false: " ", true: "b b"} {
		u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{KeepLast: keep}}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"})
		for _, addr := range []string{"a", "b"} {
			require.NoError(t, u.Free(u.hold(addr), peer.Failed))
		}
		require.Equal(t, want, u.get(u.begin())+" "+u.get(u.begin()))
		u.now += 11 * time.Second
		require.NoError(t, u.Free(u.hold("a"), peer.OK))
		require.NoError(t, u.Free(u.hold("b"), peer.Failed))
		require.Equal(t, "a", u.get(u.begin()), "a is there again, so that b can be taken out")
		require.True(t, u.Snapshot().Peers[1].Out, "although it has failed more than once")
	}
}

func TestLeastBad(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{LeastBad: true}},
		peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "c", Down: true})
	require.NoError(t, u.Free(u.hold("b"), peer.Failed))
	u.now += time.Second
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	r := u.begin()
	require.Contains(t, u.explain(r), "b, none live; out for longest")
	require.NoError(t, u.Free(r, peer.Failed))
	require.Equal(t, "a", u.get(r), "b was tried")
	require.NoError(t, u.Free(r, peer.Failed))
	require.Empty(t, u.get(r))
}

// Being out is what LeastBad passes over, and nothing else.
func TestLeastBadThatIsFull(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{LeastBad: true}},
		peer.Server{Addr: "a", MaxConns: 2}, peer.Server{Addr: "b", Down: true})
	held := u.hold("a")
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	u.hold("a")
	require.Empty(t, u.get(u.begin()), "it holds as many as it may")
	require.NoError(t, u.Free(held, peer.OK))
	require.Equal(t, "a", u.get(u.begin()))
}

func TestBackupTry(t *testing.T) {
	for keep, want := range map[bool]string{false: "a b", true: "a backup"} {
		u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"},
			peer.Server{Addr: "c"}, peer.Server{Addr: "backup", Backup: true})
		r := &peer.Request{MaxTries: 2, BackupTry: keep}
		require.NoError(t, u.Begin(r))
		var got []string
		for r.Tries() > 0 {
			got = append(got, u.get(r))
			require.NoError(t, u.Free(r, peer.Failed))
		}
		require.Equal(t, want, strings.Join(got, " "))
	}
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "backup", Backup: true})
	only := &peer.Request{MaxTries: 1, BackupTry: true}
	require.NoError(t, u.Begin(only))
	require.Equal(t, "a", u.get(only), "the first try is never the last for the backups")
	require.NoError(t, u.Free(only, peer.OK))
	r := &peer.Request{MaxTries: 3, BackupTry: true}
	require.NoError(t, u.Begin(r))
	for range 3 {
		u.get(r)
		require.NoError(t, u.Free(r, peer.Failed))
	}
	u.now += 11 * time.Second
	require.NoError(t, u.Begin(r))
	require.NotEmpty(t, u.get(r))
	require.NoError(t, u.Free(r, peer.Failed))
	u.update(peer.Server{Addr: "a"}, peer.Server{Addr: "b"}, peer.Server{Addr: "backup", Backup: true, Down: true})
	require.NotEmpty(t, u.get(r), "no backup can be had, but a primary can")
}

// bindTo binds every request to the peer of its Hint.
type bindTo struct{}

func (b bindTo) Build(*peer.Set) (peer.Selector, error) {
	return peer.Selector{Pick: peer.PickAll, Bind: b.bind}, nil
}
func (bindTo) Describe() peer.Description { return peer.Description{} }
func (bindTo) bind(g *peer.Group, r *peer.Request, now peer.Now) int {
	if r.Hint == "drained" && g.EligibleDraining(0, r, now) {
		return 0
	}
	return peer.None
}

func TestBoundTries(t *testing.T) {
	for count, want := range map[bool]int{false: 0, true: 1} {
		u := newUpdatable(t, bindTo{}, peer.Options{Policy: peer.Policy{BoundTries: count}},
			peer.Server{Addr: "a", Drain: true}, peer.Server{Addr: "b"})
		r := u.begin()
		r.Hint = "drained"
		require.Equal(t, "a", u.get(r))
		require.NoError(t, u.Free(r, peer.Failed))
		require.Equal(t, want, r.Tries())
	}
}

// Under a window shorter than the fail timeout the failures that took a peer out are
// no more when its probe fails; it stays out all the same.
func TestFailedProbeUnderAWindow(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{Window: 5 * time.Second}},
		peer.Server{Addr: "a", MaxFails: 3}, peer.Server{Addr: "b"})
	for range 3 {
		require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	}
	u.now += 11 * time.Second
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	require.NotContains(t, u.picks(20), "a")
}

func TestLeastBadOfTheOtherGroup(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{Policy: peer.Policy{LeastBad: true}},
		peer.Server{Addr: "a"}, peer.Server{Addr: "b", Backup: true})
	for _, addr := range []string{"a", "b"} {
		require.NoError(t, u.Free(u.hold(addr), peer.Failed))
		u.now++
	}
	r := u.begin()
	require.Equal(t, "a", u.get(r))
	require.NoError(t, u.Free(r, peer.Failed))
	require.Contains(t, u.explain(r), "b, none live; out for longest, a backup")
}

func TestOutForEver(t *testing.T) {
	u := newUpdatable(t, nil, peer.Options{}, peer.Server{Addr: "a", FailTimeout: math.MaxInt64}, peer.Server{Addr: "b"})
	require.NoError(t, u.Free(u.hold("a"), peer.Failed))
	require.Equal(t, time.Unix(0, math.MaxInt64).UTC(), u.Snapshot().Peers[0].OutUntil)
	require.Contains(t, u.explain(u.begin()), "failed 1 of 1, probe in 2")
}
