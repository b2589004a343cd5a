package sticky

import (
	"context"
	"hash/maphash"
	"iter"
	"math"
	"math/bits"
	"sync"
	"time"
)

// MemoryTable is a Table in this process's memory, for a bounded number of
// sessions: beyond it the least recently stored or renewed one goes. Goroutines, and upstreams,
// may share it.
//
// It takes about 45 bytes for each session, all in memory without pointers, which
// costs the garbage collector nothing. Memory once in use is used again, but
// not given back.
type MemoryTable struct {
	mu       sync.Mutex
	clock    func() time.Duration
	capacity int
	seed     maphash.Seed // keeps clients from choosing ids that all collide
	heads    []uint32     // by hash: the first row of a chain; 0: none
	slabs    []*slab      // the rows, by number
	rows     uint32       // how many rows have ever been in use; row 0 is the list's ends
	free     uint32       // rows given back, chained; 0: none
	len      int
	sids     interned
}

// row is one session.
type row struct {
	id    ID
	dead  int64  // in milliseconds of the clock: the session is forgotten from then on
	sid   uint32 // in sids
	chain uint32 // the next row with that hash, or the next free one
	// The list of use is a ring through row 0: newer of 0 is the least
	// recently used row, older of 0 the most recently used one.
	newer, older uint32
}

// slabBits is the number of bits of a row's number that count within a slab. Slabs let the
// table grow without ever copying, and so without a pause.
const slabBits = 10

type slab [1 << slabBits]row

const (
	// DefaultCapacity is the number of sessions that are remembered where
	// nothing else is said.
	DefaultCapacity = 1 << 16
	// MaxCapacity is the maximal number of sessions that a MemoryTable takes.
	MaxCapacity = 1 << 30
)

// NewMemoryTable makes a table for that many sessions, from 1 to MaxCapacity; 0:
// DefaultCapacity. The error is a *peer.ConfigError.
func NewMemoryTable(capacity int, o *Options) (*MemoryTable, error) {
	if capacity == 0 {
		capacity = DefaultCapacity
	}
	if capacity < 0 || capacity > MaxCapacity {
		return nil, refuse("Capacity", capacity, "must be from 1 to 2^30 sessions")
	}
	return &MemoryTable{
		clock: o.clock(), capacity: capacity, seed: maphash.MakeSeed(),
		heads: make([]uint32, 1<<bits.Len(uint(capacity-1))),
		slabs: []*slab{new(slab)}, rows: 1,
		sids: interned{number: map[string]uint32{}},
	}, nil
}

// Lookup implements Table. It returns no error.
func (t *MemoryTable) Lookup(_ context.Context, id ID) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.live(id); i != 0 {
		return t.sids.text(t.row(i).sid), nil
	}
	return "", nil
}

// Store implements Table. It returns no error.
func (t *MemoryTable) Store(_ context.Context, id ID, sid string, life time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.find(id)
	if i == 0 {
		i = t.insert(id, sid)
	}
	t.use(i, sid, life)
	return nil
}

// Renew implements Table. It returns no error.
func (t *MemoryTable) Renew(_ context.Context, id ID, sid string, life time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.live(id); i != 0 {
		t.use(i, sid, life)
	}
	return nil
}

// Len returns how many sessions are remembered, with those that have timed out
// and have not been cleared away yet.
func (t *MemoryTable) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.len
}

// All returns the sessions that are remembered at the call, the most recently
// used first, and the sids that they are tied to. It copies them.
func (t *MemoryTable) All() iter.Seq2[ID, string] {
	type pair struct {
		id  ID
		sid string
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []pair
	now := t.now()
	for i := t.row(0).older; i != 0; i = t.row(i).older {
		if r := t.row(i); now < r.dead {
			all = append(all, pair{r.id, t.sids.text(r.sid)})
		}
	}
	return func(yield func(ID, string) bool) {
		for _, p := range all {
			if !yield(p.id, p.sid) {
				return
			}
		}
	}
}

func (t *MemoryTable) now() int64 { return int64(t.clock() / time.Millisecond) }

func (t *MemoryTable) row(i uint32) *row { return &t.slabs[i>>slabBits][i%(1<<slabBits)] }

func (t *MemoryTable) head(id ID) *uint32 {
	return &t.heads[maphash.Bytes(t.seed, id[:])&uint64(len(t.heads)-1)]
}

// find returns the row of a session; 0: none.
func (t *MemoryTable) find(id ID) uint32 {
	i := *t.head(id)
	for i != 0 && t.row(i).id != id {
		i = t.row(i).chain
	}
	return i
}

// live is find for sessions that have not timed out.
func (t *MemoryTable) live(id ID) uint32 {
	i := t.find(id)
	if i != 0 && t.now() >= t.row(i).dead {
		return 0
	}
	return i
}

// insert makes a row for a session, as its most recently used one. Two that have
// timed out make room with it, so that the dead go faster than the living come.
func (t *MemoryTable) insert(id ID, sid string) uint32 {
	now := t.now()
	for range 2 {
		if oldest := t.row(0).newer; oldest != 0 && now >= t.row(oldest).dead {
			t.remove(oldest)
		}
	}
	if t.len == t.capacity {
		t.remove(t.row(0).newer)
	}
	i := t.free
	if i != 0 {
		t.free = t.row(i).chain
	} else {
		i = t.rows
		t.rows++
		if int(i>>slabBits) == len(t.slabs) {
			t.slabs = append(t.slabs, new(slab))
		}
	}
	head := t.head(id)
	*t.row(i) = row{id: id, chain: *head, sid: t.sids.add(sid)}
	*head = i
	t.link(i)
	t.len++
	return i
}

// remove forgets a session.
func (t *MemoryTable) remove(i uint32) {
	r := t.row(i)
	at := t.head(r.id)
	for *at != i {
		at = &t.row(*at).chain
	}
	*at = r.chain
	t.unlink(i)
	t.sids.drop(r.sid)
	*r = row{chain: t.free}
	t.free = i
	t.len--
}

// use ties a session to a sid and makes it the most recently used one.
func (t *MemoryTable) use(i uint32, sid string, life time.Duration) {
	r := t.row(i)
	if t.sids.text(r.sid) != sid {
		old := r.sid
		r.sid = t.sids.add(sid)
		t.sids.drop(old)
	}
	now, ms := t.now(), life.Milliseconds()
	r.dead = now + min(ms, math.MaxInt64-max(0, now))
	if t.row(0).older != i {
		t.unlink(i)
		t.link(i)
	}
}

// link puts a row at the new end of the list of use.
func (t *MemoryTable) link(i uint32) {
	ends, r := t.row(0), t.row(i)
	r.newer, r.older = 0, ends.older
	t.row(ends.older).newer = i
	ends.older = i
}

// unlink takes a row out of the list of use.
func (t *MemoryTable) unlink(i uint32) {
	r := t.row(i)
	t.row(r.older).newer = r.newer
	t.row(r.newer).older = r.older
}
