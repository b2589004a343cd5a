package leasttime_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
)

const ms = time.Millisecond

// answer lets a request on a peer have its header, and end well, after a time.
func answer(lb *machine.Trial, addr string, after time.Duration) {
	r := lb.HoldOn(addr, nil)
	lb.Advance(after)
	r.Header()
	r.Free(peer.OK)
}

// The peer that is expected to answer first, for its weight, is next. The
// expectation is (average time) * (requests that it holds + 1).
func TestQuickest(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []string
		times   map[string]time.Duration
		held    map[string]int
		want    string
	}{
		{"the quicker one", []string{"a", "b"}, map[string]time.Duration{"a": 200 * ms, "b": 100 * ms}, nil, "b"},
		{"unless it is busy", []string{"a", "b"}, map[string]time.Duration{"a": 200 * ms, "b": 100 * ms}, map[string]int{"b": 1}, "a"},
		{"or light", []string{"a weight=3", "b"}, map[string]time.Duration{"a": 200 * ms, "b": 100 * ms}, nil, "a"},
		{"one that is not known yet comes first", []string{"a", "b"}, map[string]time.Duration{"a": 30 * ms}, nil, "b"},
		{"20 ms are one step, 19 another", []string{"a", "b"}, map[string]time.Duration{"a": 20 * ms, "b": 19 * ms}, nil, "b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, leasttime.New(leasttime.Header), test.servers...)
			for addr, after := range test.times {
				answer(lb, addr, after)
			}
			for addr, n := range test.held {
				for range n {
					lb.HoldOn(addr, nil)
				}
			}
			require.Equal(t, test.want, lb.One(peer.Next, nil))
		})
	}
}

// Times in one step of 20 ms, and all above 5 s, are equal: then the trunk
// chooses by weight.
func TestTies(t *testing.T) {
	for _, test := range []struct {
		name string
		a, b time.Duration
	}{
		{"0 and 19 ms", 0, 19 * ms},
		{"100 and 119 ms", 100 * ms, 119 * ms},
		{"5001 ms and 9 s", 5001 * ms, 9 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, leasttime.New(leasttime.Header), "a", "b")
			answer(lb, "a", test.a)
			answer(lb, "b", test.b)
			got := map[string]int{}
			for range 10 {
				got[lb.One(peer.Next, nil)]++ // a 404 is not averaged
			}
			require.Equal(t, map[string]int{"a": 5, "b": 5}, got)
		})
	}
}

// A time of exactly 5 s is one step longer than any above it, as nginx has it.
func TestFiveSeconds(t *testing.T) {
	lb := machine.NewTrial(t, leasttime.New(leasttime.Header), "a", "b")
	answer(lb, "a", 5*time.Second)
	answer(lb, "b", 5001*ms)
	for range 5 {
		require.Equal(t, "b", lb.One(peer.Next, nil))
	}
}

// Which times are averaged at which end of a request.
func TestWhatIsAveraged(t *testing.T) {
	for _, test := range []struct {
		name    string
		events  bool // the header, or the connection and the first byte, came
		stream  bool
		outcome peer.Outcome
		want    peer.Times
	}{
		{"a good answer", true, false, peer.OK, peer.Times{Header: 10, Response: 30}},
		{"no header", false, false, peer.OK, peer.Times{}},
		{"a failure", true, false, peer.Failed, peer.Times{}},
		{"a 404 that goes on", true, false, peer.Next, peer.Times{}},
		{"abandoned", false, false, peer.Abandoned, peer.Times{}},
		{"a good session", true, true, peer.OK, peer.Times{Connect: 10, Header: 20, Response: 30}},
		{"a session without an event", false, true, peer.OK, peer.Times{Response: 30}},
		{"a failed connect", false, true, peer.Failed, peer.Times{}},
		{"a failed session", true, true, peer.Failed, peer.Times{}},
	} {
		for _, mode := range []leasttime.Mode{leasttime.Header, leasttime.LastByte, leasttime.Connect, leasttime.FirstByte} {
			if test.stream == (mode == leasttime.Header) || !test.stream && mode != leasttime.Header && mode != leasttime.LastByte {
				continue
			}
			t.Run(fmt.Sprintf("%s, mode %v", test.name, mode), func(t *testing.T) {
				lb := machine.NewTrial(t, leasttime.New(mode), "a", "b down")
				r := lb.Begin(func(r *peer.Request) { r.Stream = test.stream })
				require.Equal(t, "a", r.Get())
				lb.Advance(10 * ms)
				if test.events && test.stream {
					require.NoError(t, lb.Connected(&r.Request))
				} else if test.events {
					r.Header()
				}
				lb.Advance(10 * ms)
				if test.events && test.stream {
					require.NoError(t, lb.FirstByte(&r.Request))
				}
				lb.Advance(10 * ms)
				r.Free(test.outcome)
				require.Equal(t, test.want, lb.Of("a").Times)
			})
		}
	}
}

// An average moves by a twentieth towards a new time, rounded once for each
// product and once for the sum. A fused multiply-add, which some processors have, rounds once
// for both, and would give other averages for the last rows.
func TestAverage(t *testing.T) {
	for _, test := range []struct {
		average, time int64
		want          int64
		fusing        func(average, time float64) float64 // what fusing would make of it; nil: the same
	}{
		{0, 100, 100, nil},
		{100, 100, 100, nil},
		{100, 0, 95, nil},
		{100, 200, 105, nil},
		{10, 1000, 60, nil},
		{7, 17, 8, func(average, time float64) float64 { return 0.5 + math.FMA(time, 0.05, average*0.95) }},
		{9, 39, 11, func(average, time float64) float64 { return 0.5 + math.FMA(time, 0.05, average*0.95) }},
		{3, 13, 3, func(average, time float64) float64 { return 0.5 + math.FMA(average, 0.95, time*0.05) }},
		{12, 22, 12, func(average, time float64) float64 { return 0.5 + math.FMA(average, 0.95, time*0.05) }},
	} {
		t.Run(fmt.Sprintf("%d, then %d ms", test.average, test.time), func(t *testing.T) {
			lb := machine.NewTrial(t, leasttime.New(leasttime.Header), "a", "b down")
			if test.average > 0 {
				answer(lb, "a", time.Duration(test.average)*ms)
			}
			answer(lb, "a", time.Duration(test.time)*ms)
			require.Equal(t, test.want, lb.Of("a").Times.Header)
			if test.fusing != nil {
				require.NotEqual(t, test.want, int64(test.fusing(float64(test.average), float64(test.time))),
					"this pair would not show it")
			}
		})
	}
}

// What nginx does with a peer that never answers: nothing is known of it, which
// counts as 20 ms, the best there is, and so it is asked until what it holds
// makes up for that. Here the other one answers in 100 ms, a step of 120: the
// silent one gets 5 requests, is tied at the sixth, and takes that one too.
// Then it holds six, and is left alone until they time out. inflight counts how
// long they have waited, and leaves it alone after the first.
func TestAPeerThatNeverAnswers(t *testing.T) {
	for _, test := range []struct {
		name     string
		inflight bool
		want     int64
	}{{"without inflight", false, 6}, {"with inflight", true, 1}} {
		t.Run(test.name, func(t *testing.T) {
			lb := machine.NewTrial(t, leasttime.Method{Mode: leasttime.Header, Inflight: test.inflight}, "good", "silent")
			answer(lb, "good", 100*ms)
			good := 0
			for range 200 {
				r, name := lb.Hold()
				lb.Advance(100 * ms)
				if name == "good" {
					r.Header()
					r.Free(peer.OK)
					good++
				}
			}
			require.Equal(t, test.want, lb.Of("silent").Conns)
			require.EqualValues(t, 200-test.want, good)
		})
	}
}

// A peer that refuses at once is another story: it holds nothing, stays unknown, and so
// stays the best. Only max_fails keeps it from getting everything; where that is 0, nginx
// sends it every first attempt, with inflight and without.
func TestAPeerThatAlwaysRefuses(t *testing.T) {
	for _, inflight := range []bool{false, true} {
		for _, test := range []struct {
			server string
			want   int // of 200 first attempts, one each 100 ms
		}{{"refuses", 2}, {"refuses max_fails=0", 200}} {
			t.Run(fmt.Sprintf("%s, inflight %t", test.server, inflight), func(t *testing.T) {
				lb := machine.NewTrial(t, leasttime.Method{Mode: leasttime.Header, Inflight: inflight}, "good", test.server)
				answer(lb, "good", 100*ms)
				refused := 0
				for range 200 {
					r, name := lb.Hold()
					if name == "refuses" {
						r.Free(peer.Failed)
						require.Equal(t, "good", r.Get())
						refused++
					}
					lb.Advance(100 * ms)
					r.Header()
					r.Free(peer.OK)
				}
				require.Equal(t, test.want, refused)
			})
		}
	}
}

// Quirk Q1: in the second pass a peer is held for tied by the weight of the
// winner so far and the eta of the first best.
func TestQ1(t *testing.T) {
	t.Run("a peer twice as slow is admitted, and even wins", func(t *testing.T) {
		lb := machine.NewTrial(t, leasttime.New(leasttime.Header), "a weight=2", "b", "c")
		answer(lb, "a", 25*ms) // counts as 40, for weight 2 as 20
		answer(lb, "c", 25*ms) // 40; b, unknown, counts as 20
		require.Equal(t, []int64{-2, 0, 2}, lb.CurrentWeights())
		// a comes to 0 and is the best so far; b is tied with it, comes to 1, and
		// is the best so far, of weight 1; and 40 * 1 is 40 * 1: so is c, at 3.
		require.Equal(t, "c", lb.One(peer.Next, nil))
		require.Equal(t, []int64{0, 1, -1}, lb.CurrentWeights())
	})
	t.Run("a peer that is tied is dropped", func(t *testing.T) {
		lb := machine.NewTrial(t, leasttime.New(leasttime.Header), "a", "b weight=2", "c weight=2")
		answer(lb, "b", 25*ms) // 40, for weight 2 as 20
		answer(lb, "c", 25*ms) // the same; a, unknown, counts as 20: all three are tied
		require.Equal(t, []int64{0, -2, 2}, lb.CurrentWeights())
		require.Equal(t, "c", lb.One(peer.Next, nil))
		require.Equal(t, []int64{1, 0, -1}, lb.CurrentWeights())
		require.Equal(t, "a", lb.One(peer.Next, nil))
		require.Equal(t, []int64{-3, 2, 1}, lb.CurrentWeights())
		// a comes to -2, b to 4, the best so far, of weight 2; and 40 * 2 is not
		// 20 * 2: c gains nothing.
		require.Equal(t, "b", lb.One(peer.Next, nil))
		require.Equal(t, []int64{-2, 1, 1}, lb.CurrentWeights())
	})
}

// Quirk Q2: a failed attempt leaves flight before its time is known. Instead of
// its age 1 ms is added to the sum of the ages of the requests in flight, so that those
// that remain look older than they are.
func TestQ2(t *testing.T) {
	for _, test := range []struct {
		outcome peer.Outcome
		want    uint64 // the summed age of the one request that remains
	}{
		{peer.OK, 100},
		{peer.Failed, 201},
		{peer.Next, 201},
		{peer.Abandoned, 100}, // is not nginx's, and has not the quirk
	} {
		t.Run(test.outcome.String(), func(t *testing.T) {
			lb := machine.NewTrial(t, leasttime.Method{Mode: leasttime.LastByte, Inflight: true}, "a max_fails=0", "b down")
			first, _ := lb.Hold()
			lb.Hold()
			lb.Advance(100 * ms)
			first.Free(test.outcome)
			times := lb.Of("a").Times
			require.EqualValues(t, 1, times.InflightReqs)
			require.Equal(t, test.want, times.InflightLast)
		})
	}
}

// The time of the connect is an age only in stream: a failed attempt of http whose connect
// was noted leaves flight by the same quirk.
func TestQ2WhereTheConnectIsKnown(t *testing.T) {
	for stream, want := range map[bool]uint64{false: 201, true: 100} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			now := 1700000000 * time.Second
			up, err := peer.New([]peer.Server{{Addr: "a", MaxFails: peer.NoMaxFails}, {Addr: "b", Down: true}},
				leasttime.Method{Mode: leasttime.LastByte, Inflight: true}, &peer.Options{Clock: func() time.Duration { return now }})
			require.NoError(t, err)
			first, second := &peer.Request{Stream: stream}, &peer.Request{Stream: stream}
			for _, r := range []*peer.Request{first, second} {
				require.NoError(t, up.Begin(r))
				require.NoError(t, up.Get(r))
				require.NoError(t, up.Connected(r))
			}
			now += 100 * ms
			require.NoError(t, up.Free(first, peer.Failed))
			times := up.Snapshot().Peers[0].Times
			require.EqualValues(t, 1, times.InflightReqs)
			require.Equal(t, want, times.InflightLast)
		})
	}
}

// Quirk Q3: what is known of an idle peer counts half as much after each
// fail_timeout + 1 s; but the shift by which it is halved is taken modulo 64,
// so after 704 s at the default timeout the peer is not favoured at all.
func TestQ3(t *testing.T) {
	for _, test := range []struct {
		idle time.Duration
		want string
	}{
		{10 * time.Second, "quick"},
		{11 * time.Second, "quick"}, // 2000 ms against 100
		{55 * time.Second, "quick"}, // 125
		{66 * time.Second, "slow"},  // 62
		{703 * time.Second, "slow"}, // 0
		{704 * time.Second, "quick"},
		{714 * time.Second, "quick"},
		{759 * time.Second, "quick"},
		{770 * time.Second, "slow"}, // 62 again
	} {
		t.Run(test.idle.String(), func(t *testing.T) {
			lb := machine.NewTrial(t, leasttime.New(leasttime.Header), "slow max_conns=1", "quick")
			answer(lb, "slow", 4000*ms)
			answer(lb, "quick", 100*ms)
			lb.Advance(time.Minute)
			// A long request keeps the slow one out of the choice for all that
			// time, while the quick one is in use.
			long := lb.HoldOn("slow", nil)
			lb.Advance(test.idle - 5*time.Second)
			require.Equal(t, "quick", lb.One(peer.Next, nil))
			lb.Advance(5 * time.Second)
			long.Free(peer.Next)
			require.Equal(t, test.want, lb.One(peer.Next, nil))
		})
	}
}

// Quirk Q8: a stream that ends well before its connection is known moves a connect time
// that is known towards 2^64-1 ms. An unknown one stays unknown. balancer frees so only
// where Nginx.CancelIsOK says that a caller who goes away during the connect is one.
func TestQ8(t *testing.T) {
	for _, mode := range []leasttime.Mode{leasttime.Connect, leasttime.FirstByte, leasttime.LastByte} {
		lb := machine.NewTrial(t, leasttime.New(mode), "a", "b down")
		stream := func(connect bool) {
			r := lb.Begin(func(r *peer.Request) { r.Stream = true })
			require.Equal(t, "a", r.Get())
			lb.Advance(10 * ms)
			if connect {
				require.NoError(t, lb.Connected(&r.Request))
			}
			r.Free(peer.OK)
		}
		stream(false)
		require.Zero(t, lb.Of("a").Times.Connect)
		stream(true)
		require.EqualValues(t, 10, lb.Of("a").Times.Connect)
		stream(false)
		require.EqualValues(t, 922337203685477632, lb.Of("a").Times.Connect, "0.05 * (2^64-1) + 0.95 * 10")
		stream(true)
		require.EqualValues(t, 876220343501203712, lb.Of("a").Times.Connect)
		for range 30 { // beyond 2^63, where the average is a negative number of Go's
			stream(false)
		}
		require.Greater(t, uint64(lb.Of("a").Times.Connect), uint64(1)<<63)
	}
}

// nginx multiplies unsigned: 20 ms * 461168601842738791 is more than 2^63.
func TestGreatWeights(t *testing.T) {
	lb := machine.NewTrial(t, leasttime.New(leasttime.Header), "a weight=461168601842738791", "b")
	require.Equal(t, "a", lb.One(peer.Next, nil))
}

// With inflight a pick changes peers that it does not take: whoever has requests
// in flight has their age averaged.
func TestInflightObservesAll(t *testing.T) {
	lb := machine.NewTrial(t, leasttime.Method{Mode: leasttime.Header, Inflight: true}, "a", "b")
	lb.HoldOn("a", nil)
	lb.Advance(300 * ms)
	require.Equal(t, "b", lb.One(peer.Next, nil))
	require.EqualValues(t, 300, lb.Of("a").Times.Inflight)
	lb.Advance(100 * ms)
	require.Equal(t, "b", lb.One(peer.Next, nil))
	require.EqualValues(t, 305, lb.Of("a").Times.Inflight, "0.05 * 400 + 0.95 * 300")
}

// When a request leaves flight: at the mode's event, or else at its end.
func TestLeavesFlight(t *testing.T) {
	type event = func(*peer.Upstream, *peer.Request) error
	connected, firstByte, header := (*peer.Upstream).Connected, (*peer.Upstream).FirstByte, (*peer.Upstream).Header
	for _, test := range []struct {
		mode   leasttime.Mode
		stream bool
		events []event
		want   []int64 // in flight after each event
	}{
		{leasttime.Header, false, []event{header}, []int64{0}},
		{leasttime.LastByte, false, []event{header}, []int64{1}},
		{leasttime.Connect, true, []event{connected, firstByte}, []int64{0, 0}},
		{leasttime.FirstByte, true, []event{connected, firstByte}, []int64{1, 0}},
		{leasttime.LastByte, true, []event{connected, firstByte}, []int64{1, 1}},
	} {
		t.Run(fmt.Sprintf("%v, stream %t", test.mode, test.stream), func(t *testing.T) {
			lb := machine.NewTrial(t, leasttime.Method{Mode: test.mode, Inflight: true}, "a", "b down")
			r := lb.Begin(func(r *peer.Request) { r.Stream = test.stream })
			require.Equal(t, "a", r.Get())
			require.EqualValues(t, 1, lb.Of("a").Times.InflightReqs)
			for i, e := range test.events {
				lb.Advance(10 * ms)
				require.NoError(t, e(lb.Upstream, &r.Request))
				require.Equal(t, test.want[i], lb.Of("a").Times.InflightReqs, "after event %d", i)
			}
			r.Free(peer.OK)
			require.Zero(t, lb.Of("a").Times.InflightReqs)
		})
	}
}

// A single peer has its averages kept, but nothing is counted in flight.
func TestSingle(t *testing.T) {
	lb := machine.NewTrial(t, leasttime.Method{Mode: leasttime.LastByte, Inflight: true}, "a")
	r, _ := lb.Hold()
	require.Zero(t, lb.Of("a").Times.InflightReqs)
	lb.Advance(10 * ms)
	r.Header()
	r.Free(peer.OK)
	require.Equal(t, peer.Times{Header: 10, Response: 10}, lb.Of("a").Times)
}

// The backups are asked by least_time, too.
func TestBackup(t *testing.T) {
	lb := machine.NewTrial(t, leasttime.New(leasttime.Header), "a down", "b backup", "c backup")
	answer(lb, "b", 200*ms)
	answer(lb, "c", 100*ms)
	require.Equal(t, "c", lb.One(peer.Next, nil))
}

// A mode that does not exist is refused.
func TestUnknownMode(t *testing.T) {
	_, err := peer.New(machine.Servers(t, "a"), leasttime.New(leasttime.FirstByte+1), nil)
	var e *peer.ConfigError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "leasttime.Method.Mode", e.Field)
	require.EqualValues(t, 4, e.Value)
}

func TestModeString(t *testing.T) {
	for mode, want := range map[leasttime.Mode]string{
		leasttime.Header: "header", leasttime.LastByte: "last_byte",
		leasttime.Connect: "connect", leasttime.FirstByte: "first_byte", 9: "Mode(9)",
	} {
		require.Equal(t, want, mode.String())
	}
}
