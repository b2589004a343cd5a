package recording

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/trunklb/trunk/internal/fields"
	"github.com/trunklb/trunk/peer"
)

// version is of the format that is written.
const version = 2

// header is a recording but for its operations.
type header struct {
	Version    int             `json:"version,omitempty"`
	Name       text            `json:"name"`
	Proto      string          `json:"proto,omitempty"` // nginx's recordings: "http" or "stream"
	Directives []text          `json:"directives"`
	Remedies   json.RawMessage `json:"remedies,omitempty"`
	Method     string          `json:"method,omitempty"`
	Sticky     bool            `json:"sticky,omitempty"`
	Policy     json.RawMessage `json:"policy,omitempty"`
	Resolution time.Duration   `json:"resolution,omitempty"`
	Note       text            `json:"note,omitempty"`
	Redacted   bool            `json:"redacted,omitempty"`
	Servers    []server        `json:"servers"`
	StartDraws []uint64        `json:"start_draws,omitempty"`
	Changed    changes         `json:"changed,omitempty"`
	End        string          `json:"end,omitempty"`
}

// newHeader describes an upstream.
func newHeader(name, note string, o *origin) (h *header, err error) {
	h = &header{Version: version, Name: text(name), Note: text(note), Directives: []text{}, Sticky: o.Binds,
		Servers: newServers(o.Set), Changed: newChanges(o.Changed)}
	if o.Resolution != time.Second {
		h.Resolution = o.Resolution
	}
	if o.RandomStart {
		h.StartDraws = o.Draws
	}
	switch d := peer.Describe(o.Method); {
	case d.Directive != nil:
		h.Directives = append(h.Directives, line(d.Directive))
		if h.Remedies, err = ownFields(d.Remedies); err != nil {
			return nil, err
		}
	case !d.RoundRobin:
		h.Method = d.Name
	}
	h.Policy, err = ownFields(fields.Set(o.Policy, ""))
	return h, err
}

// ownFields writes fields that are set; nil if there is none.
func ownFields(set map[string]any) (json.RawMessage, error) {
	if len(set) == 0 {
		return nil, nil
	}
	return compact(set)
}

// options are the peer.Options that a recording says, but for clock and source.
func (h *header) options() (*peer.Options, error) {
	o := &peer.Options{Resolution: h.Resolution, RandomStart: len(h.StartDraws) > 0}
	if len(h.Policy) > 0 {
		p := struct {
			*peer.Policy
			Return struct { // of version 1
				Forgive   bool
				SlowStart time.Duration
			}
		}{Policy: &o.Policy}
		if err := strictly(h.Policy, &p); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		o.Policy.Forgive = o.Policy.Forgive || p.Return.Forgive
		o.Policy.SlowStart = max(o.Policy.SlowStart, p.Return.SlowStart)
	}
	return o, nil
}

// server is one peer, in list order of its group.
type server struct {
	Group         int   `json:"group"`
	Name          text  `json:"name"`
	Server        text  `json:"server"`
	Weight        int   `json:"weight"`
	MaxConns      int   `json:"max_conns"`
	MaxFails      int   `json:"max_fails"`
	FailTimeout   int64 `json:"fail_timeout"`
	FailTimeoutNS int64 `json:"fail_timeout_ns,omitempty"`
	Down          bool  `json:"down,omitempty"`
	Drain         bool  `json:"drain,omitempty"`
	SID           text  `json:"sid"`
	Resolve       bool  `json:"resolve,omitempty"`
	Service       text  `json:"service,omitempty"`

	TLSName   text          `json:"tls_name,omitempty"`
	Host      text          `json:"host,omitempty"`
	Zone      text          `json:"zone,omitempty"`
	SlowStart time.Duration `json:"slow_start,omitempty"`
	Labels    peer.Labels   `json:"labels,omitzero"`
}

func newServers(set *peer.Set) (list []server) {
	for gi := range 2 {
		for i := range set.Len(gi) {
			s := set.Server(gi, i)
			list = append(list, server{
				Group: gi, Name: text(s.Addr), Server: text(s.Name), Weight: s.Weight, MaxConns: s.MaxConns, MaxFails: s.MaxFails,
				FailTimeout: int64(s.FailTimeout / time.Second), FailTimeoutNS: int64(s.FailTimeout % time.Second),
				Down: s.Down, Drain: s.Drain, SID: text(set.SID(gi, i)), Resolve: s.Resolve, Service: text(s.Service),
				TLSName: text(s.TLSName), Host: text(s.Host), Zone: text(s.Zone), SlowStart: s.SlowStart, Labels: s.Labels,
			})
		}
	}
	return list
}

// peerServers takes the zeros for nginx's.
func peerServers(list []server) ([]peer.Server, error) {
	servers := make([]peer.Server, len(list))
	for i := range list {
		s := &list[i]
		if s.Group != peer.Primary && s.Group != peer.Backup {
			return nil, fmt.Errorf("server %d: no group %d", i, s.Group)
		}
		if s.FailTimeout < 0 || s.FailTimeout > math.MaxInt64/int64(time.Second) {
			return nil, fmt.Errorf("server %d: fail_timeout %d is out of range", i, s.FailTimeout)
		}
		servers[i] = peer.Server{
			Addr: string(s.Name), Name: string(s.Server), Weight: s.Weight, MaxConns: s.MaxConns,
			MaxFails: cmp.Or(s.MaxFails, peer.NoMaxFails),
			FailTimeout: cmp.Or(time.Duration(s.FailTimeout)*time.Second+time.Duration(s.FailTimeoutNS),
				peer.NoFailTimeout),
			Backup: s.Group == peer.Backup, Down: s.Down, Drain: s.Drain, Route: s.route(),
			Resolve: s.Resolve, Service: string(s.Service),
			TLSName: string(s.TLSName), Host: string(s.Host), Zone: string(s.Zone), SlowStart: s.SlowStart, Labels: s.Labels,
		}
	}
	return servers, nil
}

// route is the sid, unless that is the default, the MD5 of the address.
func (s *server) route() string {
	sum := md5.Sum([]byte(s.Name))
	if string(s.SID) == hex.EncodeToString(sum[:]) {
		return ""
	}
	return string(s.SID)
}
