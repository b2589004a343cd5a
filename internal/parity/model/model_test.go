package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/model"
)

func Example() {
	b, _ := model.New(model.Config{Servers: []model.Server{
		{Addr: "a", Weight: 5, MaxFails: 1, FailTimeout: 10},
		{Addr: "b", Weight: 1, MaxFails: 1, FailTimeout: 10},
		{Addr: "c", Weight: 1, MaxFails: 1, FailTimeout: 10},
	}})
	b.SetTime(1_700_000_000_000)
	for range 7 {
		r := b.Begin(model.Input{})
		p, _ := b.Get(r)
		b.Free(r, model.OK, 12)
		fmt.Print(p.Index, " ")
	}
	// Output: 0 0 1 0 2 0 0
}

const start = 1_700_000_000_000 // milliseconds

// upstream makes a model whose clock stands at start.
func upstream(t *testing.T, c model.Config) *model.Balancer {
	b, err := model.New(c)
	require.NoError(t, err)
	b.SetTime(start)
	return b
}

// server is a server with the default numbers.
func server(addr string, weight int) model.Server {
	return model.Server{Addr: addr, Weight: weight, MaxFails: 1, FailTimeout: 10}
}

// once runs one request with one attempt.
func once(b *model.Balancer, o model.Outcome) model.Peer {
	r := b.Begin(model.Input{})
	p, _ := b.Get(r)
	b.Free(r, o, 1)
	return p
}

// The consequences that §12 lists.

func TestSmoothRound(t *testing.T) {
	b := upstream(t, model.Config{Servers: []model.Server{server("a", 5), server("b", 1), server("c", 1)}})
	var picks strings.Builder
	for range 7 {
		picks.WriteByte("abc"[once(b, model.OK).Index])
	}
	require.Equal(t, "aabacaa", picks.String())
	for i := range 3 {
		require.Zero(t, b.State(model.Peer{Index: i}).CurrentWeight)
	}
}

func TestWeightComesBackByTraffic(t *testing.T) {
	heavy := server("a", 10)
	heavy.MaxFails = 2
	b := upstream(t, model.Config{Servers: []model.Server{heavy, server("b", 1)}})
	a := model.Peer{}

	ew := []int64{b.State(a).EffectiveWeight}
	for night := range int64(2) {
		b.SetTime(start + night*86_400_000)
		require.Equal(t, a, once(b, model.Failed))
		ew = append(ew, b.State(a).EffectiveWeight)
	}
	require.Equal(t, []int64{10, 5, 1}, ew)

	b.SetTime(start + 2*86_400_000)
	want := map[int]int{11: 3, 20: 4, 50: 6, 100: 11, 200: 20, 500: 47, 1000: 93, 5000: 456, 20000: 1820}
	light := 0
	for n := 1; n <= 20000; n++ {
		light += once(b, model.OK).Index
		if w, ok := want[n]; ok {
			require.Equal(t, w, light, "b after %d picks", n)
		}
	}
}

func TestPenalty(t *testing.T) {
	for _, test := range []struct{ weight, maxFails, want int }{
		{1, 1, 1}, {1, 2, 0}, {1, 3, 0}, {3, 5, 0}, {10, 2, 5}, {10, 0, 0},
	} {
		s := server("a", test.weight)
		s.MaxFails = test.maxFails
		b := upstream(t, model.Config{Servers: []model.Server{s, server("b", 1)}})
		r := b.Begin(model.Input{})
		p, _ := b.Get(r)
		before := b.State(p).EffectiveWeight
		b.Free(r, model.Failed, 1)
		require.EqualValues(t, test.want, before-b.State(p).EffectiveWeight, "%+v", test)
	}
}

func TestOneProbeInAWindow(t *testing.T) {
	b := upstream(t, model.Config{Servers: []model.Server{server("a", 1), server("b", 1)}})
	require.Equal(t, 0, once(b, model.Failed).Index)

	b.SetTime(start + 11_000)
	probe := b.Begin(model.Input{})
	for { // until a's turn comes
		if p, _ := b.Get(probe); p.Index == 0 {
			break
		}
		b.Free(probe, model.OK, 1)
		probe = b.Begin(model.Input{})
	}
	for range 10 {
		require.Equal(t, 1, once(b, model.OK).Index)
	}
	b.Free(probe, model.OK, 1)
	require.Zero(t, b.State(model.Peer{}).Fails)
}

// What nginx does not have, or no recording shows.

func TestAbandonedConcludesNothing(t *testing.T) {
	b := upstream(t, model.Config{
		Servers:  []model.Server{server("a", 1), server("b", 1)},
		Method:   model.LeastTime,
		Time:     model.LastByte,
		Inflight: true,
		Sticky:   model.Sticky{Kind: model.StickyLearn, Timeout: 1000},
	})
	r := b.Begin(model.Input{})
	p, _ := b.Get(r)
	b.Header(r, 5, "session")
	held := b.State(p)
	require.True(t, b.Free(r, model.Abandoned, 7))

	want := held
	want.Conns, want.InflightReqs = 0, 0
	require.Equal(t, want, b.State(p))
	require.Equal(t, 1, r.Tries())
	require.Empty(t, b.Sessions())
	require.False(t, b.Free(r, model.Abandoned, 7), "a second free")
}

func TestAbandonedSingleHasNoTriesLeft(t *testing.T) {
	b := upstream(t, model.Config{Servers: []model.Server{server("a", 1)}})
	r := b.Begin(model.Input{})
	p, _ := b.Get(r)
	r.GiveBackTry()
	b.Free(r, model.Abandoned, -1)
	require.Zero(t, r.Tries())
	require.Zero(t, b.State(p).Conns)
}

// Quirk Q7: there are more backups than primaries.
func TestRandomRetryAmongTheBackups(t *testing.T) {
	backup := func(addr string) model.Server {
		s := server(addr, 1)
		s.Backup = true
		return s
	}
	b := upstream(t, model.Config{
		Servers: []model.Server{server("a", 1), backup("b"), backup("c")},
		Method:  model.Random,
		Random:  func() uint32 { return 1 },
	})
	r := b.Begin(model.Input{})
	var picked []model.Peer
	for r.Tries() > 0 {
		p, ok := b.Get(r)
		require.True(t, ok)
		picked = append(picked, p)
		b.Free(r, model.Failed, -1)
	}
	require.Equal(t, []model.Peer{{Group: 0}, {Group: 1}, {Group: 1, Index: 1}}, picked)
}

func TestTheOldestSessionGoes(t *testing.T) {
	b := upstream(t, model.Config{
		Servers: []model.Server{server("a", 1), server("b", 1)},
		Sticky:  model.Sticky{Kind: model.StickyLearn, Timeout: 1e12, MaxSessions: 2},
	})
	serve := func(lookup, created string) {
		r := b.Begin(model.Input{Lookup: lookup})
		b.Get(r)
		b.Header(r, 1, created)
		b.Free(r, model.OK, 2)
	}
	serve("", "one")
	serve("", "two")
	serve("one", "") // used again
	serve("", "three")
	var ids []string
	for _, s := range b.Sessions() {
		ids = append(ids, s.ID)
	}
	require.ElementsMatch(t, []string{ // MD5 of "one" and "three"
		"f97c5d29941bfb1b2fdab0874906ab82", "35d6d33467aae9a2e3dccb4b6b027878",
	}, ids)
}
