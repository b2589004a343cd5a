package sticky

import (
	"context"
	"crypto/md5"
	"time"
)

// ID is what a Table knows a session by: the MD5 of its id, as in nginx. The
// table so holds nothing that a client could log in with.
type ID = [md5.Size]byte

// Table remembers which peer, by its sid, a session is tied to. MemoryTable is
// one; another may be remote, shared by many processes.
//
// Its methods are called outside of all locks, and must be safe for concurrent
// use. In package balancer the context is the request's; when a session is learned
// at the request's end, a cancel of the request no longer stops it. A table
// that may block bounds its time itself.
//
// An error never fails the request: a session that cannot be looked up is not
// known, and one that cannot be stored is not learned. Package balancer does not
// report it; a table whose errors matter has to report them itself.
type Table interface {
	// Lookup returns the sid that the session is tied to; empty if it is not
	// known. It does not renew it.
	Lookup(ctx context.Context, id ID) (sid string, err error)
	// Store ties the session to the sid, whatever it was tied to before. It is
	// forgotten when it has not been stored or renewed for the time life.
	Store(ctx context.Context, id ID, sid string, life time.Duration) error
	// Renew is Store if the session is known, and else nothing. See Learn.Table for how
	// often it is called.
	Renew(ctx context.Context, id ID, sid string, life time.Duration) error
}
