package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/roundrobin"
	"github.com/trunklb/trunk/sticky"
)

// methods are all methods, with and without their remedies.
var methods = []peer.Method{
	nil,
	roundrobin.New(),
	leastconn.New(),
	leasttime.New(leasttime.Header),
	leasttime.Method{Mode: leasttime.LastByte, Inflight: true},
	leasttime.Method{Mode: leasttime.Connect, TrueTies: true},
	leasttime.Method{Mode: leasttime.FirstByte, Inflight: true, FullDecay: true, FairStart: true},
	hash.New("$uri"),
	hash.Method{Key: `a "quoted; $text`, WholeRange: true},
	hash.NewConsistent("$uri"),
	hash.Method{Key: "$uri", Consistent: true, ByAddress: true, FullWalk: true, MaxPoints: 1 << 20},
	iphash.New(),
	iphash.Method{WholeRange: true},
	random.New(),
	random.NewTwo(),
	random.Method{Two: true, KeepWeights: true},
}

var policies = []peer.Policy{
	{},
	{Penalty: .3, Recovery: 3500 * time.Millisecond},
	{Forgive: true, SlowStart: 4 * time.Second},
	{Penalty: .1, Recovery: 2 * time.Second, Forgive: true, SlowStart: time.Second},
	{Window: 5 * time.Second, KeepLast: true, BoundTries: true},
	{LeastBad: true, Recovery: time.Second},
}

// stage is an upstream that records, and those who use it.
type stage struct {
	t        require.TestingT
	random   *rand.Rand
	up       *peer.Upstream
	now      time.Duration
	servers  []peer.Server
	requests []*peer.Request
	used     int // servers that there were so far
	// decisions is the text of every get's.
	decisions  []string
	operations int
}

// newStage makes the upstream of a seed, with a method.
func newStage(t require.TestingT, seed uint64, m peer.Method, to *bytes.Buffer, options ...func(*recording.WriterOptions)) (*stage, *recording.Writer) {
	s := &stage{t: t, random: rand.New(rand.NewPCG(seed, 1)), now: 1_700_000_000*time.Second + 123_456_789}
	for range 1 + s.random.IntN(14) {
		s.add()
	}
	s.servers[0].Backup = false
	used, o := m, &recording.WriterOptions{Name: fmt.Sprint(m), Note: fmt.Sprint("seed ", seed)}
	if s.odds(2) {
		used = sticky.Over(m)
	}
	for _, f := range options {
		f(o)
	}
	w := recording.NewWriter(to, o)
	var err error
	s.up, err = peer.New(s.servers, used, &peer.Options{
		Clock: func() time.Duration { return s.now }, Source: rand.NewPCG(seed, 2), Record: w,
		Policy: policies[s.random.IntN(len(policies))], RandomStart: s.odds(2),
		Resolution: []time.Duration{0, 0, 100 * time.Millisecond, 1250 * time.Microsecond}[s.random.IntN(4)],
	})
	require.NoError(t, err)
	return s, w
}

func (s *stage) odds(n int) bool { return s.random.IntN(n) == 0 }

// add adds a server, often of few properties, now and then of all.
func (s *stage) add() {
	s.used++
	v := peer.Server{Addr: fmt.Sprintf("192.0.2.%d:80", s.used%90), Weight: s.random.IntN(6), MaxFails: 1 + s.random.IntN(3),
		FailTimeout: time.Duration(1+s.random.IntN(3)) * time.Second}
	switch s.random.IntN(9) {
	case 0:
		v.Backup = true
	case 1:
		v.MaxConns = 1 + s.random.IntN(2)
	case 2:
		v.Drain = true
	case 3:
		v.Down = s.odds(2)
		v.Name = "name.example:80"
	case 4:
		v.MaxFails, v.FailTimeout = peer.NoMaxFails, peer.NoFailTimeout
		v.Route = "r\xff" + fmt.Sprint(s.used)
		v.TLSName, v.Host, v.Zone, v.SlowStart = "tls", "host", "zürich", time.Second
		v.Labels = peer.Labels{}.With("rack", fmt.Sprint("r", s.used))
	}
	s.servers = slices.Insert(s.servers, s.random.IntN(len(s.servers)+1), v)
}

// update changes the set a little.
func (s *stage) update() {
	s.servers = slices.Clone(s.servers)
	i := s.random.IntN(len(s.servers))
	switch {
	case s.odds(2) && len(s.servers) < 16:
		s.add()
	case s.odds(2):
		s.servers[i].Weight = s.random.IntN(9)
		s.servers[i].Down = s.odds(4)
	case len(s.servers) > 1:
		s.servers = slices.Delete(s.servers, i, i+1)
	}
	if !slices.ContainsFunc(s.servers, func(v peer.Server) bool { return !v.Backup }) {
		s.servers[0].Backup = false
	}
	require.NoError(s.t, s.up.Update(s.servers))
}

// bring gives a request what it brings.
func (s *stage) bring(r *peer.Request) {
	r.Key = []string{"", "/a", "/b?x=<&>", "\x00\xfe\"\\key"}[s.random.IntN(4)]
	r.Client = []netip.Addr{{}, netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("203.0.113.9"),
		netip.MustParseAddr("2001:db8::7"), netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("fe80::1%eth0")}[s.random.IntN(6)]
	r.Hint = "nobody's"
	if s.odds(2) {
		r.Hint = s.up.Set().SID(peer.Primary, s.random.IntN(s.up.Set().Len(peer.Primary)))
	}
	if s.odds(3) {
		r.Hint = ""
	}
	r.Stream, r.BackupTry = s.odds(3), s.odds(8)
}

func (s *stage) begin() {
	r := &peer.Request{}
	if n := len(s.requests); n > 12 || n > 0 && s.odds(3) {
		if r = s.requests[s.random.IntN(n)]; s.up.Begin(r) != nil {
			return // it holds a peer
		}
	} else {
		s.requests = append(s.requests, r)
	}
	s.bring(r)
	r.MaxTries = s.random.IntN(4)
	require.NoError(s.t, s.up.Begin(r))
}

// use does something with a request.
func (s *stage) use(r *peer.Request) {
	if s.odds(12) {
		s.up.Internal(glue.Key{}).GiveBackTry(r)
	}
	if _, holds := s.up.Peer(r); !holds {
		if s.odds(4) {
			s.bring(r)
		}
		d := &peer.Decision{}
		if err := s.up.Explain(r, d); !errors.Is(err, peer.ErrNoLivePeers) {
			require.NoError(s.t, err)
		}
		s.decisions = append(s.decisions, d.String())
		return
	}
	switch s.random.IntN(6) {
	case 0:
		require.NoError(s.t, s.up.Connected(r))
	case 1:
		require.NoError(s.t, s.up.FirstByte(r))
	case 2:
		require.NoError(s.t, s.up.Header(r))
	default:
		o := []peer.Outcome{peer.OK, peer.OK, peer.Failed, peer.Next, peer.Abandoned}[s.random.IntN(5)]
		require.NoError(s.t, s.up.Free(r, o))
	}
}

// play does some n operations at random.
func (s *stage) play(n int) {
	for s.operations < n {
		s.operations++
		switch k := s.random.IntN(100); {
		case k < 12:
			s.now += time.Duration(s.random.Int64N(int64(900 * time.Millisecond)))
		case k < 13:
			s.now += time.Duration(s.random.IntN(30)) * time.Second
		case k < 15:
			s.update()
		case k < 35 || len(s.requests) == 0:
			s.begin()
		default:
			s.use(s.requests[s.random.IntN(len(s.requests))])
		}
	}
}

// replayed replays a recording, and returns its decisions.
func replayed(t require.TestingT, file []byte) (recording.Result, []string) {
	var decisions []string
	result, err := recording.Replay(bytes.NewReader(file), nil, func(s *recording.Step) error {
		if s.Decision != nil {
			decisions = append(decisions, s.Decision.String())
		}
		return nil
	})
	require.NoError(t, err)
	return result, decisions
}

// Whatever is done to an upstream comes out the same when it is replayed: every
// pick, every state, and the account of every decision.
func TestTenThousandMixedOperations(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	for i, m := range methods {
		t.Run(fmt.Sprint(i, " ", m), func(t *testing.T) {
			t.Parallel()
			var file bytes.Buffer
			s, w := newStage(t, uint64(i), m, &file)
			s.play(n * 5 / 4) // some of it is not an operation
			require.NoError(t, w.Close())
			result, decisions := replayed(t, file.Bytes())
			require.Equal(t, s.decisions, decisions)
			require.Greater(t, result.Operations, n)
			require.False(t, result.Cut)
			require.Empty(t, result.End)
			t.Logf("%+v, %d bytes", result, file.Len())
		})
	}
}

func TestAnyOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var file bytes.Buffer
		m := rapid.SampledFrom(methods).Draw(t, "method")
		s, w := newStage(t, rapid.Uint64().Draw(t, "seed"), m, &file)
		s.play(rapid.IntRange(0, 300).Draw(t, "operations"))
		require.NoError(t, w.Close())
		_, decisions := replayed(t, file.Bytes())
		require.Equal(t, len(s.decisions), len(decisions))
		require.Equal(t, s.decisions, append([]string(nil), decisions...))
	})
}
