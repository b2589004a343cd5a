package sticky

import (
	"context"
	"crypto/md5"
	"slices"
	"time"
)

// Learn is nginx's sticky learn: the sessions that backends create are
// remembered, with the peer that created them.
//
// When a request has gone well, the session that its answer creates is tied to
// its peer; if it creates none, the session that the request came with, if it is
// known, is renewed, and moved to that peer. The next request with
// the session's id gets the peer that it is tied to.
type Learn struct {
	// Create and Lookup are texts with variables for the session id in the
	// answer, such as "$upstream_cookie_session", and in the request,
	// "$cookie_session". Of each the first that is not empty counts.
	// An id of more than MaxSessionID bytes is none.
	Create, Lookup []string
	// Zone is the name, ZoneSize the size in bytes of nginx's shared memory zone.
	// The name has no meaning here. The size is one way to say Capacity.
	Zone     string
	ZoneSize int64
	// Capacity is how many sessions are remembered at most; beyond it the
	// least recently used one goes. A session takes about 45 bytes, when it is
	// there. 0: one for every 256 bytes of ZoneSize (some 4000 sessions in a
	// megabyte, about what nginx holds), or DefaultCapacity without a ZoneSize.
	Capacity int
	// Timeout is how long an unused session is kept, in whole milliseconds.
	// 0: 10 minutes.
	Timeout time.Duration
	// Header learns when the response header arrives, not at the request's end.
	Header bool
	// Sync is nginx's sync parameter (accepted; a Table decides by itself who shares it).
	Sync bool
	// Table remembers the sessions, instead of a MemoryTable of this upstream
	// alone. Capacity and ZoneSize are then the table's own affair. nginx renews a
	// session with each request; a Table that is no MemoryTable may be remote and is
	// asked to renew one once in a tenth of Timeout, unless its peer changes. So a
	// session may be forgotten up to that much sooner after its last request.
	Table Table
}

const (
	// DefaultTimeout is how long an unused session is kept.
	DefaultTimeout = 10 * time.Minute
	// MaxSessionID is the maximal length of a session id in bytes: that of a
	// header line that nginx takes by default.
	MaxSessionID = 8 << 10
)

// zoneSession is how many bytes of nginx's zone a session takes, by nginx's
// documentation.
const zoneSession = 256

// learn is a Learn that has been validated.
type learn struct {
	create, lookup []string
	atHeader       bool
	life           time.Duration
	table          Table
	// renewed are the sessions that were renewed a short time ago, with their sids; nil:
	// each request renews.
	renewed *MemoryTable
}

// A remote table renews a session once in a renewShare-th of its life. No more than
// maxRenewed sessions are remembered for that; beyond it they are renewed more often.
const (
	renewShare = 10
	maxRenewed = 1 << 16
)

func (l Learn) bind(o *Options) (*Binding, error) {
	if l.Timeout == 0 {
		l.Timeout = DefaultTimeout
	}
	switch {
	case len(l.Create) == 0:
		return nil, refuse("Create", l.Create, "at least one variable is needed")
	case len(l.Lookup) == 0:
		return nil, refuse("Lookup", l.Lookup, "at least one variable is needed")
	case l.Timeout < 0 || l.Timeout%time.Millisecond != 0:
		return nil, refuse("Timeout", l.Timeout, "must be whole milliseconds, or 0")
	case l.ZoneSize < 0:
		return nil, refuse("ZoneSize", l.ZoneSize, "must be at least 0")
	case l.Capacity < 0:
		return nil, refuse("Capacity", l.Capacity, "must be at least 0")
	}
	if l.Table == nil {
		table, err := NewMemoryTable(l.capacity(), o)
		if err != nil {
			return nil, err
		}
		l.Table = table
	}
	b := &learn{create: slices.Clone(l.Create), lookup: slices.Clone(l.Lookup),
		atHeader: l.Header, life: l.Timeout, table: l.Table}
	if _, local := l.Table.(*MemoryTable); !local {
		var err error
		if b.renewed, err = NewMemoryTable(maxRenewed, o); err != nil {
			return nil, err
		}
	}
	return &Binding{learn: b}, nil
}

// capacity is the number of sessions that the fields ask for.
func (l *Learn) capacity() int {
	switch {
	case l.Capacity > 0:
		return l.Capacity
	case l.ZoneSize > 0:
		return int(min(max(1, l.ZoneSize/zoneSession), MaxCapacity))
	}
	return DefaultCapacity
}

// hint returns the sid of the session that the request came with.
func (l *learn) hint(ctx context.Context, v Values) (string, error) {
	id, ok := session(v.first(l.lookup))
	if !ok {
		return "", nil
	}
	sid, err := l.table.Lookup(ctx, id)
	if l.renewed != nil {
		if before, _ := l.renewed.Lookup(ctx, id); before != "" && before != sid {
			l.forget(ctx, id) // another process has moved it
		}
	}
	return sid, err
}

// forget lets the next renewal of a session reach the table.
func (l *learn) forget(ctx context.Context, id ID) {
	if l.renewed != nil {
		_ = l.renewed.Store(ctx, id, "", time.Millisecond)
	}
}

// learn ties the session to the peer that has served it.
func (l *learn) learn(ctx context.Context, sid string, v Values) error {
	if id, ok := session(v.first(l.create)); ok {
		l.forget(ctx, id)
		return l.table.Store(ctx, id, sid, l.life)
	}
	if id, ok := session(v.first(l.lookup)); ok {
		return l.renew(ctx, id, sid)
	}
	return nil
}

// renew renews a session, unless that was done a short time ago.
func (l *learn) renew(ctx context.Context, id ID, sid string) error {
	if l.renewed == nil {
		return l.table.Renew(ctx, id, sid, l.life)
	}
	if before, _ := l.renewed.Lookup(ctx, id); before == sid {
		return nil
	}
	if err := l.table.Renew(ctx, id, sid, l.life); err != nil {
		return err
	}
	return l.renewed.Store(ctx, id, sid, l.life/renewShare)
}

// session returns the key of a session id; false if there is none.
func session(id string) (ID, bool) {
	if id == "" || len(id) > MaxSessionID {
		return ID{}, false
	}
	return md5.Sum([]byte(id)), true
}
