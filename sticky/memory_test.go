package sticky_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/sticky"
)

func number(i int) (id sticky.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(i))
	return id
}

// literalTable is what a MemoryTable is to do, written down as a list, the most
// recently used session first.
type literalTable struct {
	capacity int
	sessions []literalSession
}

type literalSession struct {
	id   sticky.ID
	sid  string
	dead time.Duration
}

func (l *literalTable) lookup(id sticky.ID, now time.Duration) string {
	for _, s := range l.sessions {
		if s.id == id && now < s.dead {
			return s.sid
		}
	}
	return ""
}

func (l *literalTable) store(id sticky.ID, sid string, dead time.Duration) {
	l.sessions = slices.DeleteFunc(l.sessions, func(s literalSession) bool { return s.id == id })
	l.sessions = slices.Insert(l.sessions, 0, literalSession{id, sid, dead})
	l.sessions = l.sessions[:min(len(l.sessions), l.capacity)]
}

func (l *literalTable) live(now time.Duration) (list []literalSession) {
	for _, s := range l.sessions {
		if now < s.dead {
			list = append(list, literalSession{id: s.id, sid: s.sid})
		}
	}
	return list
}

// TestTableAgreesWithAList lets a table and a list of sessions with one timeout take
// random steps: whatever is asked, both must know the same sessions, in the same order.
func TestTableAgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		now := time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "epoch")) * time.Millisecond
		life := time.Duration(rapid.IntRange(1, 50).Draw(t, "life")) * time.Millisecond
		literal := &literalTable{capacity: rapid.IntRange(1, 20).Draw(t, "capacity")}
		table, err := sticky.NewMemoryTable(literal.capacity, &sticky.Options{Clock: func() time.Duration { return now }})
		require.NoError(t, err)
		ids := rapid.Map(rapid.IntRange(0, 30), number)
		sids := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		t.Repeat(map[string]func(*rapid.T){
			"store": func(t *rapid.T) {
				id, sid := ids.Draw(t, "id"), sids.Draw(t, "sid")
				literal.store(id, sid, now+life)
				require.NoError(t, table.Store(ctx, id, sid, life))
			},
			"renew": func(t *rapid.T) {
				id, sid := ids.Draw(t, "id"), sids.Draw(t, "sid")
				if literal.lookup(id, now) != "" {
					literal.store(id, sid, now+life)
				}
				require.NoError(t, table.Renew(ctx, id, sid, life))
			},
			"time": func(t *rapid.T) { now += time.Duration(rapid.IntRange(0, 20).Draw(t, "ms")) * time.Millisecond },
			"": func(t *rapid.T) {
				var list []literalSession
				for id, sid := range table.All() {
					list = append(list, literalSession{id: id, sid: sid})
				}
				require.Equal(t, literal.live(now), list)
				require.GreaterOrEqual(t, table.Len(), len(list))
				require.LessOrEqual(t, table.Len(), literal.capacity)
				for i := range 31 {
					sid, err := table.Lookup(ctx, number(i))
					require.NoError(t, err)
					require.Equal(t, literal.lookup(number(i), now), sid)
				}
			},
		})
	})
}

// TestDeadSessionsAreCleared says that a table does not stay full of sessions
// that nobody uses any more.
func TestDeadSessionsAreCleared(t *testing.T) {
	now, ctx := time.Duration(0), context.Background()
	table, err := sticky.NewMemoryTable(1000, &sticky.Options{Clock: func() time.Duration { return now }})
	require.NoError(t, err)
	for i := range 1000 {
		require.NoError(t, table.Store(ctx, number(i), "a", time.Second))
	}
	now += time.Second
	for i := range 600 {
		require.NoError(t, table.Store(ctx, number(1000+i), "b", time.Minute))
	}
	require.Equal(t, 600, table.Len())
}

func TestTableForever(t *testing.T) {
	table, err := sticky.NewMemoryTable(1, at(math.MaxInt64))
	require.NoError(t, err)
	require.NoError(t, table.Store(context.Background(), number(1), "a", math.MaxInt64))
	sid, err := table.Lookup(context.Background(), number(1))
	require.NoError(t, err)
	require.Equal(t, "a", sid)
}

// TestAllMayCallTheTable says that nothing is locked while the caller looks on,
// and that the caller may stop looking.
func TestAllMayCallTheTable(t *testing.T) {
	table, err := sticky.NewMemoryTable(10, nil)
	require.NoError(t, err)
	for i := range 5 {
		require.NoError(t, table.Store(context.Background(), number(i), "a", time.Hour))
	}
	for id := range table.All() {
		require.NoError(t, table.Store(context.Background(), id, "b", time.Hour))
		break
	}
	sid, err := table.Lookup(context.Background(), number(4))
	require.NoError(t, err)
	require.Equal(t, "b", sid)
}

// TestTableIsShared lets goroutines do everything at once; the race detector judges.
func TestTableIsShared(t *testing.T) {
	table, err := sticky.NewMemoryTable(50, nil)
	require.NoError(t, err)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			ctx := context.Background()
			for i := range 2000 {
				id := number((i * (g + 1)) % 100)
				_ = table.Store(ctx, id, fmt.Sprint("peer", i%7), time.Hour)
				_ = table.Renew(ctx, id, "other", time.Hour)
				if sid, err := table.Lookup(ctx, id); err != nil || sid != "" && sid != "other" && sid[:4] != "peer" {
					t.Errorf("%q, %v", sid, err)
				}
				if i%500 == 0 {
					for range table.All() {
						_ = table.Len()
					}
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 50, table.Len())
}

const million = 1_000_000

// full is a table with a million sessions of a hundred peers.
func full(b *testing.B) *sticky.MemoryTable {
	table, err := sticky.NewMemoryTable(million, nil)
	require.NoError(b, err)
	for i := range million {
		_ = table.Store(b.Context(), number(i), fmt.Sprintf("%032d", i%100), time.Hour)
	}
	return table
}

// BenchmarkMillion makes a table of a million sessions, and reports what it takes.
func BenchmarkMillion(b *testing.B) {
	for b.Loop() {
		before := heap()
		table := full(b)
		b.ReportMetric(float64(heap()-before)/million, "B/session")
		runtime.KeepAlive(table)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkTable(b *testing.B) {
	table := full(b)
	ctx := b.Context()
	b.Run("lookup", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, _ = table.Lookup(ctx, number(i*7919%million))
		}
	})
	b.Run("renew", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = table.Renew(ctx, number(i*7919%million), "a", time.Hour)
		}
	})
	b.Run("store, one goes", func(b *testing.B) {
		b.ReportAllocs()
		for i := million; b.Loop(); i++ {
			_ = table.Store(ctx, number(i), "a", time.Hour)
		}
	})
	b.Run("lookup, all processors", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				_, _ = table.Lookup(ctx, number(i*7919%million))
			}
		})
	})
}
