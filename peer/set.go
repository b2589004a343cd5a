package peer

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"
)

// The two groups of an upstream, as indexes.
const (
	Primary = 0
	Backup  = 1
)

// Set is the validated servers of an upstream: the primary group and the backup
// group, each in configuration order. It is immutable, and goroutines may
// share it. A Method builds its ring or ranges from it.
type Set struct {
	groups [2][]member
	total  [2]int64
	usable [2]usable
	number int // of peers
	// version counts the sets of an upstream; born is, by slot, in which one the slot
	// got its present peer; slots how many there are.
	version int
	born    []int
	slots   int
	// single: exactly one peer and no backup. nginx then keeps no account of
	// failures and weights at all.
	single bool
}

// usable counts the peers that are neither down nor draining.
type usable struct {
	number int
	weight int64
}

// member is one server with the defaults filled in, and its sid.
type member struct {
	Server
	sid string
}

// NewSet validates the servers and fills in nginx's defaults, with fail timeouts
// that are multiples of the resolution (0: one second). The error is a
// *ConfigError. An Upstream makes its own; this one serves to look at what a method would build.
func NewSet(servers []Server, resolution time.Duration) (*Set, error) {
	resolution, err := checkResolution(resolution)
	if err != nil {
		return nil, err
	}
	return newSet(servers, resolution, 1)
}

// newSet is NewSet for weights that count in a unit.
func newSet(servers []Server, resolution time.Duration, unit int64) (*Set, error) {
	s := &Set{}
	backups := 0
	for i := range servers {
		if servers[i].Backup {
			backups++
		}
	}
	s.groups = [2][]member{make([]member, 0, len(servers)-backups), make([]member, 0, backups)}
	for i, given := range servers {
		srv, err := given.normalized(i, resolution)
		if err != nil {
			return nil, err
		}
		g := Primary
		if srv.Backup {
			g = Backup
		}
		if most := math.MaxInt64 / unit; int64(srv.Weight) > most-s.total[g] {
			return nil, &ConfigError{Server: i, Field: "Weight", Value: srv.Weight,
				Reason: fmt.Sprintf("the weights of a group must sum to at most %d", most)}
		}
		s.total[g] += int64(srv.Weight)
		if !srv.Down && !srv.Drain {
			s.usable[g].number++
			s.usable[g].weight += int64(srv.Weight)
		}
		s.number++
		s.groups[g] = append(s.groups[g], member{srv, sid(srv)})
	}
	if len(s.groups[Primary]) == 0 {
		return nil, &ConfigError{Server: -1, Field: "Servers", Value: fmt.Sprintf("%d servers", len(servers)),
			Reason: "at least one server that is not a backup is needed"}
	}
	s.single = s.number == 1
	return s, nil
}

// sid is the session id by which sticky finds a peer again.
func sid(s Server) string {
	if s.Route != "" {
		return s.Route
	}
	sum := md5.Sum([]byte(s.Addr))
	return hex.EncodeToString(sum[:])
}

// Len returns how many peers the group Primary or Backup has, down ones included.
func (s *Set) Len(group int) int { return len(s.groups[group]) }

// Server returns the configuration of a peer, with nginx's defaults filled in
// (nginx's own zeros are zeros here).
func (s *Set) Server(group, i int) Server { return s.groups[group][i].Server }

// SID returns the session id by which sticky finds a peer again: its route, or
// the MD5 of its address in lower-case hex.
func (s *Set) SID(group, i int) string { return s.groups[group][i].sid }

// TotalWeight returns the sum of the weights of a group, down peers included.
func (s *Set) TotalWeight(group int) int64 { return s.total[group] }

// tries is how many peers a request may be given to.
func (s *Set) tries() int { return s.usable[Primary].number + s.usable[Backup].number }

// groupsEqual reports whether two sets hold the same servers.
func (s *Set) groupsEqual(t *Set) bool {
	return slices.Equal(s.groups[Primary], t.groups[Primary]) && slices.Equal(s.groups[Backup], t.groups[Backup])
}

// alike reports whether two sets hold the same servers, but for their labels.
func (s *Set) alike(t *Set) bool {
	equal := func(a, b member) bool {
		a.Labels = b.Labels
		return a == b
	}
	return slices.EqualFunc(s.groups[Primary], t.groups[Primary], equal) && slices.EqualFunc(s.groups[Backup], t.groups[Backup], equal)
}
