package balancer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/peer"
)

// Update makes servers the server lines of the upstream, in the place of those
// that it has, all at once. It may be called at any time: the same lines again change
// nothing at all, and cost a comparison.
//
// Names that are new are looked up first, in ctx; those that the upstream knows are
// not. The error is a *ConfigError that names line and field, a *ResolveError,
// what the method says of its servers, the context's, or ErrClosed; then nothing has
// changed.
//
// A peer is known by its address; of several with one address the first is the
// first. One that stays keeps its state: what it holds, its failures, times,
// connections, and its place in the cycle, which a changed weight scales so
// that there is no burst to it or away from it. One that is new starts as
// nginx's do; so does one that was removed and is added again. A request in
// flight is freed to its own peer, and its next try picks among the
// present ones that it has not tried. A removed peer gets no more requests; when
// its last one ends it is forgotten, and its idle connections are closed, if
// they are trunk's own (see RoundTripper). docs/membership.md has
// the whole.
func (u *Upstream) Update(ctx context.Context, servers []Server) error {
	return u.change(ctx, func([]Server) ([]Server, error) { return slices.Clone(servers), nil })
}

// Add appends server lines. One with the address of another is another peer, as
// in nginx. Errors are those of Update.
func (u *Upstream) Add(ctx context.Context, servers ...Server) error {
	return u.change(ctx, func(now []Server) ([]Server, error) { return append(now, servers...), nil })
}

// Remove takes away all server lines with an address: "10.0.0.1:80", or the name
// that is looked up, "app:80". ErrNoServer (errors.Is) if there is none; a single
// address of a name cannot be removed. Other errors are those of Update: the
// last server that is not a backup cannot be removed either.
func (u *Upstream) Remove(addr string) error {
	return u.change(context.Background(), func(now []Server) ([]Server, error) {
		after := slices.DeleteFunc(now, has(addr))
		if len(after) == len(now) {
			return nil, u.noServer(addr)
		}
		return after, nil
	})
}

// UpdateServer changes all server lines with an address, as Remove takes it: their weight,
// Down, Drain, MaxConns and so on.
//
//	up.UpdateServer(ctx, "10.0.0.1:80", func(s *balancer.Server) { s.Drain = true })
//
// f may be called more than once, if others change the lines at the same time; it
// holds no lock. Errors are those of Remove and Update.
func (u *Upstream) UpdateServer(ctx context.Context, addr string, f func(*Server)) error {
	return u.change(ctx, func(now []Server) ([]Server, error) {
		found := false
		for i := range now {
			if has(addr)(now[i]) {
				found = true
				f(&now[i])
			}
		}
		if !found {
			return nil, u.noServer(addr)
		}
		return now, nil
	})
}

// Servers returns the server lines as they were given last: names are names
// here. State has the peers.
func (u *Upstream) Servers() []Server { return slices.Clone(u.lines.Load().servers) }

// has reports whether a line has an address.
func has(addr string) func(Server) bool {
	text := printed(addr)
	return func(s Server) bool { return s.Addr == addr || printed(s.Addr) == text }
}

func (u *Upstream) noServer(addr string) error {
	for _, p := range u.peers.Snapshot().Peers {
		if s := &p.Server; !p.Removed && s.Addr == printed(addr) && s.Name != s.Addr {
			return fmt.Errorf("%w: %s (a peer of the line %s has it)", ErrNoServer, addr, s.Name)
		}
	}
	return fmt.Errorf("%w: %s", ErrNoServer, addr)
}

// lines are the server lines as they were given. Immutable.
type lines struct{ servers []Server }

// change replaces the lines by what edit makes of a copy of them, which is
// called again if another change came first. Names are looked up without a lock.
func (u *Upstream) change(ctx context.Context, edit func([]Server) ([]Server, error)) error {
	fresh := answers{}
	for {
		if u.closed.Load() {
			return ErrClosed
		}
		before := u.lines.Load()
		servers, err := edit(slices.Clone(before.servers))
		if err != nil {
			return err
		}
		if slices.Equal(servers, before.servers) {
			return nil
		}
		missing, done, err := u.apply(before, servers, fresh)
		if done || err != nil {
			return err
		}
		if err := u.names.lookUp(ctx, missing, fresh); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
}

// apply makes servers the lines, unless others than before are in the meantime, or
// there are names in them that neither the upstream nor fresh knows.
func (u *Upstream) apply(before *lines, servers []Server, fresh answers) (missing []question, done bool, err error) {
	u.peers.Internal(glue.Key{}).Hold()
	defer u.peers.Internal(glue.Key{}).Release()
	u.changing.Lock()
	defer u.changing.Unlock()
	if u.lines.Load() != before {
		return nil, false, nil
	}
	x, err := u.names.expand(servers, fresh)
	if err != nil || len(x.missing) > 0 {
		return x.missing, false, err
	}
	if err := u.exchangePeers(x); err != nil {
		return nil, false, err
	}
	u.lines.Store(&lines{servers})
	u.names.keep(x.answers)
	u.watchNames()
	return nil, true, nil
}

// exchangePeers gives peer another list.
func (u *Upstream) exchangePeers(x *expansion) error {
	if u.closed.Load() {
		return ErrClosed
	}
	defer u.follow() // whatever came of it
	return x.blame(u.peers.Update(x.servers))
}

// blame turns the index of a peer in a *ConfigError into that of its line.
func (x *expansion) blame(err error) error {
	var e *peer.ConfigError
	if !errors.As(err, &e) || e.Server < 0 || e.Server >= len(x.line) || x.line[e.Server] == e.Server {
		return err
	}
	own := *e
	own.Server = x.line[e.Server]
	return &own
}
