package parity

import (
	"cmp"
	"compress/gzip"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	cookies "github.com/trunklb/trunk/internal/cookie"
)

// Scenario is one recorded run of one upstream: a line of a METHOD.jsonl.gz.
type Scenario struct {
	Name       string   `json:"name"`
	Proto      string   `json:"proto"`      // "http" or "stream"
	Directives []string `json:"directives"` // of the upstream block, besides its servers
	Note       string   `json:"note"`
	Servers    []Server `json:"servers"`
	Ops        []Op     `json:"ops"`
}

// Server is one peer, after name resolution, in list order.
type Server struct {
	Group       int    `json:"group"`  // 0 primary, 1 backup
	Name        string `json:"name"`   // printable address
	Server      string `json:"server"` // text of the directive
	Weight      int    `json:"weight"`
	MaxConns    int    `json:"max_conns"`
	MaxFails    int    `json:"max_fails"`
	FailTimeout int64  `json:"fail_timeout"` // seconds
	Down        bool   `json:"down"`
	Drain       bool   `json:"drain"`
	SID         string `json:"sid"` // a route, or the MD5 of the name
}

// Route is the server's route, if it has one. The recordings give only the sid;
// what is not the default, the MD5 of the printable address, is a route.
func (s *Server) Route() string {
	sum := md5.Sum([]byte(s.Name))
	if s.SID == hex.EncodeToString(sum[:]) {
		return ""
	}
	return s.SID
}

// The kinds of Op.
const (
	OpTime     = "time"
	OpRequest  = "req"
	OpGet      = "get"
	OpHeader   = "header"
	OpNotify   = "notify"
	OpNext     = "next"
	OpFin      = "fin"
	OpSessions = "sessions"
)

// Op is one operation of a scenario: what was given, what came of it, and
// which fields of which peers it changed. Which fields are in use depends on
// the kind, Op.
type Op struct {
	Op string `json:"op"`
	ID int    `json:"id"`

	// time
	Sec int64 `json:"sec"` // whole seconds
	MS  int64 `json:"ms"`  // milliseconds; of notify: since the get

	// req
	Key      ByteString `json:"key"`
	IP       string     `json:"ip"`
	Cookies  []string   `json:"cookies"`
	Args     string     `json:"args"`
	TriesCap int        `json:"tries_cap"`

	// get
	Draws     []uint32 `json:"draws"`
	Peer      *Peer    `json:"peer"` // nil: BUSY
	SetCookie []string `json:"set_cookie"`

	// header
	HeaderTime        int64  `json:"header_time"`
	UpstreamSetCookie string `json:"upstream_set_cookie"`
	Notified          *bool  `json:"notify"` // nil: true

	// notify
	What string `json:"what"` // "connect" or "first_byte"

	// next, fin
	State        string `json:"state"`
	ResponseTime int64  `json:"response_time"`
	Freed        bool   `json:"freed"`

	// sessions
	Want []Session `json:"want"`

	Tries   int                `json:"tries"`   // expected after req, get, next and fin
	Changed map[string]Changes `json:"changed"` // by Peer.String
}

// Changes are the fields of a peer that an operation changed, by their
// recorded names, with their new values.
type Changes map[string]Int

// Int is a number of a recording. A number beyond the signed range (nginx
// counts inflight_last unsigned) is held by its bits.
type Int int64

// UnmarshalJSON reads a signed or an unsigned 64-bit number.
func (n *Int) UnmarshalJSON(data []byte) error {
	if v, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*n = Int(v)
		return nil
	}
	v, err := strconv.ParseUint(string(data), 10, 64)
	*n = Int(v)
	return err
}

// ByteString holds any bytes. Recordings spell each byte as the character of
// that code point.
type ByteString string

// UnmarshalJSON turns the characters back into bytes.
func (s *ByteString) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	var raw []byte
	for _, c := range text {
		if c > 0xff {
			return fmt.Errorf("character %U in a string of bytes", c)
		}
		raw = append(raw, byte(c))
	}
	*s = ByteString(raw)
	return nil
}

// Peer names a peer by its group (0 primary, 1 backup) and its index in it.
type Peer struct{ Group, Index int }

// String spells the peer as the recordings do, "g/i".
func (p Peer) String() string { return fmt.Sprintf("%d/%d", p.Group, p.Index) }

// UnmarshalJSON reads [g, i].
func (p *Peer) UnmarshalJSON(data []byte) error {
	return unmarshalTuple(data, &p.Group, &p.Index)
}

// Session is a learned session: the MD5 of its id, and the sid it is tied to.
type Session struct{ ID, SID string }

// UnmarshalJSON reads [id, sid].
func (s *Session) UnmarshalJSON(data []byte) error {
	return unmarshalTuple(data, &s.ID, &s.SID)
}

// unmarshalTuple reads an array of exactly as many members as it is given.
func unmarshalTuple(data []byte, members ...any) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if len(raw) != len(members) {
		return fmt.Errorf("%d members in %s, want %d", len(raw), data, len(members))
	}
	for i, m := range members {
		if err := json.Unmarshal(raw[i], m); err != nil {
			return err
		}
	}
	return nil
}

// Variable looks up what the recordings know of nginx's variables of a
// request: $remote_addr, $arg_NAME and $cookie_NAME. Others are empty.
func (op *Op) Variable(name string) string {
	if name == "$remote_addr" {
		return op.IP
	}
	if arg, ok := strings.CutPrefix(name, "$arg_"); ok {
		return pair(strings.Split(op.Args, "&"), arg)
	}
	if cookie, ok := strings.CutPrefix(name, "$cookie_"); ok {
		return cookies.Find([]string{strings.Join(op.Cookies, "; ")}, cookie)
	}
	return ""
}

// Answered is Variable once the answer's cookie is known.
func (op *Op) Answered(name, setCookie string) string {
	return cmp.Or(op.Variable(name), UpstreamVariable(name, setCookie))
}

// UpstreamVariable looks up $upstream_cookie_NAME in the answer's cookie.
func UpstreamVariable(name, setCookie string) string {
	cookie, ok := strings.CutPrefix(name, "$upstream_cookie_")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(setCookie, ";")
	return pair([]string{first}, cookie)
}

// pair finds the value of the first "name=value" of that name.
func pair(pairs []string, name string) string {
	for _, p := range pairs {
		if n, value, ok := strings.Cut(p, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// Scenarios reads a METHOD.jsonl.gz, one scenario at a time. It ends at the
// first error, which it yields.
func Scenarios(path string) iter.Seq2[*Scenario, error] {
	return func(yield func(*Scenario, error) bool) {
		f, err := open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		for n := 1; ; n++ {
			s := new(Scenario)
			err := f.Decode(s)
			if err == io.EOF {
				return
			}
			if err == nil {
				err = s.check()
			}
			if err != nil {
				yield(nil, fmt.Errorf("%s: scenario %d (%s): %w", path, n, s.Name, err))
				return
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// file is an open recording.
type file struct {
	*json.Decoder
	io.Closer
}

// open opens a gzipped recording. In decoding it, a field that this package does
// not know is an error: it might be an expectation that would go unchecked.
func open(path string) (*file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := json.NewDecoder(z)
	d.DisallowUnknownFields()
	return &file{d, f}, nil
}

// loadOne reads a recording that is a single value.
func loadOne[T any](path string) (v T, err error) {
	f, err := open(path)
	if err != nil {
		return v, err
	}
	defer f.Close()
	if err := f.Decode(&v); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// check refuses what a replay could not judge.
func (s *Scenario) check() error {
	if len(s.Servers) == 0 || len(s.Ops) == 0 {
		return errors.New("no servers or no operations")
	}
	known := map[string]bool{}
	for _, p := range s.peers() {
		known[p.String()] = true
	}
	for i, op := range s.Ops {
		if op.Op == OpTime && op.MS/1000 != op.Sec {
			return fmt.Errorf("op %d: the clocks differ: sec %d, ms %d", i, op.Sec, op.MS)
		}
		for p, changes := range op.Changed {
			if !known[p] {
				return fmt.Errorf("op %d: no peer %s", i, p)
			}
			for _, name := range slices.Sorted(maps.Keys(changes)) {
				if fieldNamed(name) == nil {
					return fmt.Errorf("op %d: peer %s: no field %q", i, p, name)
				}
			}
		}
	}
	return nil
}

// peers names the peer of each server, in the order of Servers.
func (s *Scenario) peers() []Peer {
	var list []Peer
	next := map[int]int{}
	for _, server := range s.Servers {
		list = append(list, Peer{server.Group, next[server.Group]})
		next[server.Group]++
	}
	return list
}
