package recording_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/internal/parity"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
	"github.com/trunklb/trunk/roundrobin"
	"github.com/trunklb/trunk/sticky"
)

const traces = "../../internal/parity/testdata/traces"

// eachFile runs a test for every file of nginx's recordings; with -short for every
// fourth.
func eachFile(t *testing.T, test func(t *testing.T, path string)) {
	paths, err := filepath.Glob(filepath.Join(traces, "*.jsonl.gz"))
	require.NoError(t, err)
	require.Len(t, paths, 35)
	for i, path := range paths {
		if testing.Short() && i%4 != 0 {
			continue
		}
		if strings.Contains(path, "unconnected") {
			continue // its events have times of their own, which are not the clock's
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".jsonl.gz"), func(t *testing.T) {
			t.Parallel()
			test(t, path)
		})
	}
}

// nginx's recordings are recordings. Those of sticky give cookies, not hints.
func TestRecordingsOfNginxReplay(t *testing.T) {
	eachFile(t, func(t *testing.T, path string) {
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		result, err := recording.Replay(z, nil, nil)
		if strings.Contains(path, "sticky") || strings.Contains(path, "cookie") {
			require.ErrorIs(t, err, recording.ErrNoHints)
			return
		}
		require.NoError(t, err)
		require.Greater(t, result.Recordings, 10)
		require.Greater(t, result.Operations, 1000)
		require.False(t, result.Cut)
		t.Logf("%+v", result)
	})
}

// What nginx was asked is asked of upstreams that record, sticky over all methods
// among them; their recordings replay, and hold as many operations.
func TestScenariosOfNginxAreRecorded(t *testing.T) {
	eachFile(t, func(t *testing.T, path string) {
		n := 0
		for s, err := range parity.Scenarios(path) {
			if n++; testing.Short() && n > 5 {
				break
			}
			require.NoError(t, err)
			var file bytes.Buffer
			var last *subject
			require.NoError(t, parity.Replay(s, func(s *parity.Scenario, draw func() uint32) (parity.Subject, error) {
				var err error
				last, err = newSubject(s, draw, &file)
				return last, err
			}))
			require.NoError(t, last.writer.Close())
			result, err := recording.Replay(&file, nil, nil)
			require.NoError(t, err)
			require.Equal(t, recording.Result{Recordings: 1, Operations: result.Operations, Gets: last.gets}, result)
		}
	})
}

// subject is a scenario of nginx's on an upstream that records.
type subject struct {
	*peer.Upstream
	writer   *recording.Writer
	stream   bool
	binding  *sticky.Binding
	sessions *sticky.MemoryTable
	now      time.Duration
	gets     int
	requests map[int]*call
}

type call struct {
	peer.Request
	op        *parity.Op
	answered  string
	setCookie []string
}

func (c *call) value(text string) string {
	return cmp.Or(c.op.Variable(text), parity.UpstreamVariable(text, c.answered))
}

type source func() uint32

func (s source) Uint64() uint64 { return uint64(s()) << 33 }

var _ rand.Source = source(nil)

func newSubject(s *parity.Scenario, draw func() uint32, to io.Writer) (*subject, error) {
	// The block is only there for its method and sticky.
	block := "upstream u { server a:80; server b:80; " + strings.Join(append(s.Directives, "}"), "; ")
	if s.Proto == "stream" {
		block = "stream { " + block + "}"
	}
	parsed, err := nginxconf.Parse(block, nil)
	if err != nil {
		return nil, err
	}
	config := &parsed.Blocks[0].Config
	p := &subject{requests: map[int]*call{}, stream: s.Proto == "stream"}
	clock := func() time.Duration { return p.now }
	method := config.Method
	if method == nil {
		method = roundrobin.New()
	}
	p.writer = recording.NewWriter(to, &recording.WriterOptions{Name: s.Name})
	if p.sessions, err = sticky.NewMemoryTable(0, &sticky.Options{Clock: clock}); err != nil {
		return nil, err
	}
	if learn, ok := config.Sticky.(sticky.Learn); ok {
		learn.Table = p.sessions
		config.Sticky = learn
	}
	if config.Sticky != nil {
		method = sticky.Over(method)
	}
	if p.binding, err = sticky.New(config.Sticky, &sticky.Options{Clock: clock}); err != nil {
		return nil, err
	}
	p.Upstream, err = peer.New(servers(s), method, &peer.Options{Clock: clock, Source: source(draw), Record: p.writer})
	return p, err
}

func servers(s *parity.Scenario) (list []peer.Server) {
	for _, s := range s.Servers {
		list = append(list, peer.Server{
			Addr: s.Name, Name: s.Server, Weight: s.Weight, MaxConns: s.MaxConns,
			MaxFails:    cmp.Or(s.MaxFails, peer.NoMaxFails),
			FailTimeout: cmp.Or(time.Duration(s.FailTimeout)*time.Second, peer.NoFailTimeout),
			Backup:      s.Group == peer.Backup, Down: s.Down, Drain: s.Drain, Route: s.Route(),
		})
	}
	return list
}

func (p *subject) Time(sec, ms int64) { p.now = time.Duration(ms) * time.Millisecond }

func (p *subject) Request(id int, op *parity.Op) (int, error) {
	c := &call{op: op}
	c.Key, c.MaxTries, c.Stream = string(op.Key), op.TriesCap, p.stream
	if addr := cmp.Or(op.IP, "127.0.0.1"); addr != "unix:" {
		c.Client = netip.MustParseAddr(addr)
	}
	p.requests[id] = c
	err := p.Begin(&c.Request)
	return c.Tries(), err
}

func (p *subject) Get(id int) (parity.Got, error) {
	c := p.requests[id]
	c.answered = ""
	p.gets++
	var err error
	if c.Hint, err = p.binding.Hint(context.Background(), c.value); err != nil {
		return parity.Got{}, err
	}
	if err = p.Upstream.Get(&c.Request); errors.Is(err, peer.ErrNoLivePeers) {
		err = nil
	}
	got := parity.Got{Tries: c.Tries()}
	if at, ok := p.Peer(&c.Request); ok {
		got.Peer = &parity.Peer{Group: at.Group, Index: at.Index}
		if text := p.binding.SetCookie(at.SID, c.value); text != "" {
			c.setCookie = []string{text}
		}
	}
	got.SetCookie = c.setCookie
	return got, err
}

func (p *subject) Header(id int, _ int64, setCookie string, told bool) error {
	if !told {
		return nil
	}
	c := p.requests[id]
	c.answered = setCookie
	at, _ := p.Peer(&c.Request)
	return errors.Join(p.Upstream.Header(&c.Request), p.binding.Header(context.Background(), at.SID, c.value))
}

func (p *subject) Notify(id int, what string, _ int64) error {
	if what == "connect" {
		return p.Connected(&p.requests[id].Request)
	}
	return p.FirstByte(&p.requests[id].Request)
}

func (p *subject) Next(id int, state string) (bool, int, error) {
	o, ok := map[string]peer.Outcome{"OK": peer.OK, "FAILED": peer.Failed, "NEXT": peer.Next}[state]
	if !ok {
		return false, 0, fmt.Errorf("no state %q", state)
	}
	c := p.requests[id]
	at, _ := p.Peer(&c.Request)
	err := p.Free(&c.Request, o)
	if errors.Is(err, peer.ErrNotHeld) {
		return false, c.Tries(), nil
	}
	if o == peer.OK {
		err = errors.Join(err, p.binding.OK(context.Background(), at.SID, c.value))
	}
	return true, c.Tries(), err
}

func (p *subject) Fin(id int, state string, _ int64) (bool, int, error) { return p.Next(id, state) }

func (p *subject) Sessions() (list []parity.Session, err error) {
	for id, sid := range p.sessions.All() {
		list = append(list, parity.Session{ID: hex.EncodeToString(id[:]), SID: sid})
	}
	slices.SortFunc(list, func(a, b parity.Session) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

func (p *subject) State(at parity.Peer) parity.PeerState {
	s := p.Upstream.State(at.Group, at.Index)
	return parity.PeerState{
		CurrentWeight: s.CurrentWeight, EffectiveWeight: s.EffectiveWeight,
		Conns: s.Conns, Fails: s.Fails, Accessed: s.Accessed, Checked: s.Checked,
		HeaderTime: s.Times.Header, ResponseTime: s.Times.Response, ConnectTime: s.Times.Connect,
		InflightTime: s.Times.Inflight, InflightLast: int64(s.Times.InflightLast),
		InflightChanged: s.Times.InflightChanged, InflightReqs: s.Times.InflightReqs,
	}
}
