package model

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// sid is the name by which a hint means a peer (§9).
func sid(s Server) string { return cmp.Or(s.Route, md5Hex(s.Addr)) }

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// hinted is the peer that the request's hint means, if it may have it (§9).
// Only the first peer with that sid is looked at.
func (b *Balancer) hinted(r *Request) *peer {
	hint := b.hint(r)
	if hint == "" {
		return nil
	}
	for _, p := range b.groups[r.group].peers {
		if p.sid == hint {
			if b.eligibleDraining(r, p) {
				return p
			}
			return nil
		}
	}
	return nil
}

// hint is the sid that the request asks for. It is looked up afresh for each
// get, because what was learned may have changed.
func (b *Balancer) hint(r *Request) string {
	switch b.config.Sticky.Kind {
	case StickyCookie, StickyRoute:
		return r.in.Hint
	case StickyLearn:
		if s := b.session(r.in.Lookup); s != nil {
			return s.sid
		}
	}
	return ""
}

// cookieText is the cookie that ties the client to the peer (§9).
func (b *Balancer) cookieText(p *peer) string {
	c := b.config.Sticky
	var t strings.Builder
	t.WriteString(c.CookieName + "=" + p.sid)
	switch {
	case c.ExpiresMax:
		t.WriteString("; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000")
	case c.Expires > 0:
		at := time.Unix(b.now(), 0).UTC().Add(c.Expires)
		fmt.Fprintf(&t, "; expires=%s; max-age=%d",
			at.Format("Mon, 02-Jan-06 15:04:05 GMT"), int64(c.Expires/time.Second))
	}
	if c.Domain != "" {
		t.WriteString("; domain=" + c.Domain)
	}
	if c.HTTPOnly {
		t.WriteString("; httponly")
	}
	if c.Secure {
		t.WriteString("; secure")
	}
	if c.SameSite != "" {
		t.WriteString("; samesite=" + c.SameSite)
	}
	if c.Path != "" {
		t.WriteString("; path=" + c.Path)
	}
	return t.String()
}

// session is one row of the learned table.
type session struct {
	id   string // MD5 of the session id
	sid  string
	used int64 // when it was stored or renewed, in milliseconds
}

// session looks a session id up. A dead one is not known.
func (b *Balancer) session(id string) *session {
	if id == "" {
		return nil
	}
	for _, s := range b.sessions {
		if s.id == md5Hex(id) && !b.dead(s) {
			return s
		}
	}
	return nil
}

func (b *Balancer) dead(s *session) bool {
	return b.ms-s.used >= b.config.Sticky.Timeout.Milliseconds()
}

// learn ties a session to the peer that served it (§9): the session that the
// answer created, else the known one that the request came with.
func (b *Balancer) learn(r *Request, p *peer) {
	if b.config.Sticky.Kind != StickyLearn {
		return
	}
	if r.created != "" {
		b.store(session{md5Hex(r.created), p.sid, b.ms})
	} else if s := b.session(r.in.Lookup); s != nil {
		b.store(session{s.id, p.sid, b.ms})
	}
}

// store puts a session at the end of the table, which is in the order of use.
// When the zone is full, the least recently used one goes.
func (b *Balancer) store(s session) {
	b.sessions = slices.DeleteFunc(b.sessions, func(old *session) bool { return old.id == s.id })
	if limit := b.config.Sticky.MaxSessions; limit > 0 && len(b.sessions) >= limit {
		b.sessions = b.sessions[1:]
	}
	b.sessions = append(b.sessions, &s)
}

// Session is a learned session: the MD5 of its id, in hexadecimal, and the sid
// it is tied to.
type Session struct{ ID, SID string }

// Sessions lists the live sessions in the order of their IDs.
func (b *Balancer) Sessions() []Session {
	var live []Session
	for _, s := range b.sessions {
		if !b.dead(s) {
			live = append(live, Session{s.id, s.sid})
		}
	}
	slices.SortFunc(live, func(x, y Session) int { return strings.Compare(x.ID, y.ID) })
	return live
}
