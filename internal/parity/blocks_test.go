package parity

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/sticky"
)

// TestBlocks compares the import with nginx's verdict on recorded blocks: accept
// or refuse, with the line and the message, and of what is accepted every server,
// peer and group, the method, sticky, and what else nginx made of it.
//
//	TRUNK_BLOCKS=DIR go test ./internal/parity -run TestBlocks -v
//
// plays the *.jsonl files of that folder instead, and prints the blocks per file.
func TestBlocks(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("the recordings are of an nginx of 64 bits")
	}
	dir, given := os.LookupEnv("TRUNK_BLOCKS")
	switch {
	case !given:
		dir = filepath.Join("testdata", "blocks")
	case dir == "":
		t.Fatal("TRUNK_BLOCKS is empty")
	case !filepath.IsAbs(dir):
		dir = filepath.Join("..", "..", dir) // relative to the root of the module
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	total := 0
	for _, file := range files {
		records := blockRecords(t, file)
		accepted := 0
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, r := range records {
				if r.OK {
					accepted++
				}
				t.Run(r.ID+"_"+strings.ReplaceAll(r.Tag, "/", "_"), r.check)
			}
		})
		t.Logf("%s: %d blocks, of which nginx accepts %d", filepath.Base(file), len(records), accepted)
		total += len(records)
	}
	require.Positive(t, total, "no block in the *.jsonl files of %q", dir)
}

// A blockRecord is one text and what nginx said of it.
type blockRecord struct {
	ID, Tag    string
	Text       *string
	OK         bool
	Error      string
	ErrorLine  *int `json:"error_line"`
	Warn       []string
	Hosts      string
	Files      map[string]string
	Directives [][][]string
	Upstreams  []blockUpstream
	blockUpstream
}

// A blockUpstream is what nginx made of one upstream block.
type blockUpstream struct {
	Name             *string
	Method           *string
	MethodDetail     json.RawMessage `json:"method_detail"`
	Sticky           json.RawMessage
	StickyOverridden json.RawMessage `json:"sticky_overridden"`
	Servers          []blockServer
	Peers            []blockPeer
	Groups           []blockGroup
	Effective        struct {
		Keepalive json.RawMessage
		Zone      *struct {
			Name string
			Size int64
		}
		Resolver bool
	}
}

type blockServer struct {
	Name        string
	Weight      int
	MaxConns    int   `json:"max_conns"`
	MaxFails    int   `json:"max_fails"`
	FailTimeout int64 `json:"fail_timeout"`
	Down        bool
	Drain       bool
	Backup      bool
	Route       *string
	Resolve     bool
	Service     *string
	Addresses   int `json:"naddrs"`
}

type blockPeer struct {
	Group       int
	Name        string
	Server      string
	Weight      int
	MaxConns    int   `json:"max_conns"`
	MaxFails    int   `json:"max_fails"`
	FailTimeout int64 `json:"fail_timeout"`
	Down        bool
	Drain       bool
	SID         string
	Resolve     bool
}

type blockGroup struct {
	Number      int
	TotalWeight uint64 `json:"total_weight"`
	Tries       int
	Single      int
	Weighted    int
}

// blockRecords reads the records of a file. Lines of another kind, without a text, are
// not blocks.
func blockRecords(t *testing.T, file string) (records []*blockRecord) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		r := &blockRecord{}
		require.NoError(t, json.Unmarshal(lines.Bytes(), r), "%s: %.80s", file, lines.Text())
		if r.Text != nil {
			records = append(records, r)
		}
	}
	require.NoError(t, lines.Err())
	return records
}

// hosts is the resolver of the recording.
func (r *blockRecord) hosts(host string) (ips []netip.Addr, err error) {
	for entry := range strings.SplitSeq(r.Hosts, ";") {
		name, addrs, _ := strings.Cut(entry, "=")
		if name != host || name == "" {
			continue
		}
		for a := range strings.SplitSeq(addrs, ",") {
			ips = append(ips, netip.MustParseAddr(a))
		}
		return ips, nil
	}
	return nil, errors.New("no such host")
}

func (r *blockRecord) options() *nginxconf.ParseOptions {
	files := fstest.MapFS{}
	for name, text := range r.Files {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return &nginxconf.ParseOptions{Lookup: r.hosts, Include: nginxconf.IncludeFS(files, "")}
}

func (r *blockRecord) check(t *testing.T) {
	got, err := nginxconf.Parse(*r.Text, r.options())
	switch {
	case r.overflows():
		// The one deliberate difference: nginx lets the sum of the weights overflow.
		var config *peer.ConfigError
		require.ErrorAs(t, err, &config, "a sum of weights beyond 2^63-1 must be refused")
		assert.Equal(t, "Weight", config.Field)
	case !r.OK:
		r.checkError(t, err)
	default:
		require.NoError(t, err)
		r.checkParsed(t, got)
	}
}

// overflows reports whether nginx's own sum of weights is not what an int64 holds.
func (r *blockRecord) overflows() bool {
	for _, u := range append(r.Upstreams, r.blockUpstream) {
		for _, g := range u.Groups {
			if g.TotalWeight > math.MaxInt64 {
				return true
			}
		}
	}
	return false
}

func (r *blockRecord) checkError(t *testing.T, err error) {
	var e *nginxconf.ParseError
	require.ErrorAs(t, err, &e, "nginx says: %s", r.Error)
	assert.Equal(t, r.Error, e.Message)
	line := 0 // of the text itself
	if e.File == "" {
		line = e.Line
	}
	if r.ErrorLine == nil {
		assert.Zero(t, line, "line")
	} else {
		assert.Equal(t, *r.ErrorLine, line, "line")
	}
	assert.Equal(t, r.Warn, blockWarnings(e.Warnings))
}

// blockWarnings are the warnings that are nginx's own.
func blockWarnings(all []balancer.Warning) []string {
	messages := []string{}
	for _, w := range all {
		if w.Code == nginxconf.CodeMethodRedefined {
			messages = append(messages, w.Message)
		}
	}
	return messages
}

func (r *blockRecord) checkParsed(t *testing.T, got *nginxconf.File) {
	assert.Equal(t, r.Warn, blockWarnings(got.Warnings))
	assert.Equal(t, append([][][]string{}, r.Directives...), blockDirectives(*r.Text))
	want := r.Upstreams
	if want == nil && r.Name != nil {
		want = []blockUpstream{r.blockUpstream}
	}
	if r.Name == nil { // a stream block, of which only the verdict is recorded, or none
		assert.Len(t, got.Blocks, len(r.Directives))
		return
	}
	require.Len(t, got.Blocks, len(want))
	for i := range want {
		want[i].check(t, &got.Blocks[i], r.hosts)
	}
}

// blockDirectives are the words in the upstream blocks of a text.
func blockDirectives(text string) [][][]string {
	blocks := [][][]string{}
	var walk func(b *conflex.Block)
	walk = func(b *conflex.Block) {
		for _, d := range b.Directives {
			if d.Block == nil {
				continue
			}
			if d.Name() != "upstream" {
				walk(d.Block)
				continue
			}
			words := [][]string{}
			for _, inner := range d.Block.Directives {
				words = append(words, inner.Words)
			}
			blocks = append(blocks, words)
		}
	}
	walk(conflex.Parse(text))
	return blocks
}

func (u *blockUpstream) check(t *testing.T, b *nginxconf.Block, hosts func(string) ([]netip.Addr, error)) {
	assert.Equal(t, *u.Name, b.Config.Name)
	assert.JSONEq(t, string(u.MethodDetail), blockJSON(t, blockMethod(b.Config.Method)))
	assert.JSONEq(t, blockOrNull(u.Sticky), blockJSON(t, blockSticky(b.Config.Sticky)))
	assert.JSONEq(t, blockOrNull(u.StickyOverridden), blockJSON(t, blockSticky(b.StickyLost)))

	assert.JSONEq(t, string(u.Effective.Keepalive), blockJSON(t, blockKeepalive(b)))
	if z := u.Effective.Zone; z == nil {
		assert.Zero(t, b.Zone)
	} else {
		assert.Equal(t, nginxconf.Zone{Name: z.Name, Size: z.Size}, b.Zone)
	}
	assert.Equal(t, u.Effective.Resolver, b.Resolver != nil)

	peers, err := balancer.Expand(b.Config.Servers, hosts)
	require.NoError(t, err)
	assert.Equal(t, u.Servers, blockServers(t, b.Config.Servers, hosts))
	assert.Equal(t, u.Peers, blockPeers(peers))
	assert.Equal(t, u.Groups, blockGroups(peers, b.Config.Method))
}

func blockMethod(m peer.Method) any {
	type object = map[string]any
	switch m := m.(type) {
	case nil:
		return object{"kind": "round_robin"}
	case leastconn.Method:
		return object{"kind": "least_conn"}
	case iphash.Method:
		return object{"kind": "ip_hash"}
	case hash.Method:
		return object{"kind": "hash", "key": m.Key, "consistent": m.Consistent}
	case random.Method:
		return object{"kind": "random", "two": m.Two}
	case leasttime.Method:
		mode := map[leasttime.Mode]string{leasttime.Header: "header", leasttime.LastByte: "last_byte"}[m.Mode]
		return object{"kind": "least_time", "mode": mode, "inflight": m.Inflight}
	}
	return m
}

func blockSticky(s sticky.Sticky) any {
	type object = map[string]any
	switch s := s.(type) {
	case nil:
		return nil
	case sticky.Cookie:
		var expires any
		switch {
		case s.Expires == sticky.MaxExpires:
			expires = "max"
		case s.Expires == sticky.ExpiresAtOnce:
			expires = 0
		case s.Expires != 0:
			expires = int64(s.Expires / time.Second)
		}
		return object{"type": "cookie", "name": s.Name, "expires": expires, "domain": blockText(s.Domain),
			"path": blockText(s.Path), "httponly": s.HTTPOnly, "secure": s.Secure, "samesite": blockText(s.SameSite)}
	case sticky.Route:
		return object{"type": "route", "variables": blockVariables(s.Variables)}
	case sticky.Learn:
		if s.Timeout == 0 {
			s.Timeout = sticky.DefaultTimeout
		}
		return object{"type": "learn", "create": blockVariables(s.Create), "lookup": blockVariables(s.Lookup),
			"zone": s.Zone, "zone_size": s.ZoneSize, "timeout_ms": s.Timeout.Milliseconds(), "header": s.Header}
	}
	return s
}

func blockVariables(texts []string) (names []string) {
	for _, text := range texts {
		names = append(names, strings.TrimPrefix(text, "$"))
	}
	return names
}

func blockKeepalive(b *nginxconf.Block) any {
	k := b.Keepalive
	switch c := b.Config.Keepalive; {
	case c == 0 && k.Max != 32, c == balancer.NoKeepalive && k.Max != 0, c > 0 && k.Max != c:
		return "Config.Keepalive differs"
	}
	switch c := b.Config.KeepaliveTimeout; {
	case c == 0 && k.Timeout != time.Minute, c == balancer.NoKeepalive && k.Timeout != 0, c > 0 && k.Timeout != c:
		return "Config.KeepaliveTimeout differs"
	case k.Max == 0:
		return map[string]any{"max": 0}
	}
	return map[string]any{"max": k.Max, "local": k.Local, "requests": k.Requests,
		"time_ms": k.Time.Milliseconds(), "timeout_ms": k.Timeout.Milliseconds()}
}

func blockServers(t *testing.T, servers []balancer.Server, hosts func(string) ([]netip.Addr, error)) (out []blockServer) {
	for i, s := range servers {
		p := blockParameters(s)
		expanded, err := balancer.Expand(servers[i:i+1], hosts)
		require.NoError(t, err)
		out = append(out, blockServer{Name: s.Name, Weight: p.Weight, MaxConns: p.MaxConns, MaxFails: p.MaxFails,
			FailTimeout: p.FailTimeout, Down: s.Down, Drain: s.Drain, Backup: s.Backup, Route: blockPointer(s.Route),
			Resolve: s.Resolve, Service: blockPointer(s.Service), Addresses: len(expanded)})
	}
	return out
}

// blockPeers lists peers as nginx does: first the primaries, then the backups, and in each
// group first those with an address.
func blockPeers(servers []balancer.Server) (out []blockPeer) {
	for group := range 2 {
		for _, resolve := range []bool{false, true} {
			for _, s := range servers {
				if s.Backup != (group == 1) || s.Resolve != resolve {
					continue
				}
				p := blockParameters(s)
				p.Group, p.Server, p.Name, p.Resolve = group, s.Name, s.Addr, resolve
				sum := md5.Sum([]byte(s.Addr))
				if p.SID = hex.EncodeToString(sum[:]); s.Route != "" {
					p.SID = s.Route
				}
				if resolve {
					p.Name, p.SID = "", ""
				}
				out = append(out, p)
			}
		}
	}
	return out
}

// blockParameters are the parameters with nginx's defaults.
func blockParameters(s balancer.Server) blockPeer {
	p := blockPeer{Weight: max(s.Weight, 1), MaxConns: s.MaxConns, MaxFails: s.MaxFails,
		FailTimeout: int64(s.FailTimeout / time.Second), Down: s.Down, Drain: s.Drain}
	switch s.MaxFails {
	case 0:
		p.MaxFails = 1
	case balancer.NoMaxFails:
		p.MaxFails = 0
	}
	switch s.FailTimeout {
	case 0:
		p.FailTimeout = 10
	case balancer.NoFailTimeout:
		p.FailTimeout = 0
	case math.MaxInt64: // as long as can be, which is what nginx has too
		p.FailTimeout = math.MaxInt64
	}
	return p
}

// blockGroups counts as nginx does: names that are resolved at run time do not count, but
// make room for backups where the method takes them.
func blockGroups(servers []balancer.Server, m peer.Method) []blockGroup {
	var groups [2]blockGroup
	backups, resolves := false, false
	for _, s := range servers {
		g := &groups[0]
		if s.Backup {
			g, backups = &groups[1], true
		}
		if s.Resolve {
			resolves = true
			continue
		}
		g.Number++
		g.TotalWeight += uint64(max(s.Weight, 1))
		if !s.Down && !s.Drain {
			g.Tries++
		}
	}
	for i := range groups {
		if g := &groups[i]; g.TotalWeight != uint64(g.Number) {
			g.Weighted = 1
		}
	}
	if groups[0].Number == 1 && groups[1].Number == 0 {
		groups[0].Single = 1
	}
	if backups || resolves && blockTakesBackups(m) {
		return groups[:]
	}
	return groups[:1]
}

func blockTakesBackups(m peer.Method) bool { return !peer.Describe(m).BackupsFirst }

func blockJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func blockOrNull(raw json.RawMessage) string {
	if raw == nil {
		return "null"
	}
	return string(raw)
}

// blockText is null for an empty text.
func blockText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func blockPointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
