package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/peer"
)

// Busy is in place of a peer's name where none was available.
const Busy = "BUSY"

// Trial is an upstream on a clock that the test sets. Its peers are called by
// their addresses.
type Trial struct {
	*peer.Upstream
	t     TB
	now   time.Duration
	draws draws
}

// draws are random numbers: those that the test has set, and then any.
type draws struct {
	set    []uint32
	random rand.PCG
	drawn  int
}

// Uint64 implements rand.Source. A draw is the top 31 bits of it.
func (d *draws) Uint64() uint64 {
	d.drawn++
	if len(d.set) == 0 {
		return d.random.Uint64()
	}
	n := d.set[0]
	d.set = d.set[1:]
	return uint64(n) << 33
}

// NewTrial makes an upstream of servers written as nginx's server lines, such
// as "a weight=5 max_fails=2". The time is nginx's usual one, long after the
// epoch; the random numbers are the same in every run.
func NewTrial(t TB, m peer.Method, lines ...string) *Trial {
	return NewTrialOf(t, m, Servers(t, lines...))
}

// NewTrialOf makes an upstream of servers written in Go.
func NewTrialOf(t TB, m peer.Method, servers []peer.Server) *Trial {
	l := &Trial{t: withoutHelper{t}, now: 1_700_000_000 * time.Second}
	l.draws.random.Seed(1, 2)
	var err error
	l.Upstream, err = peer.New(servers, m, &peer.Options{
		Clock:  func() time.Duration { return l.now },
		Source: &l.draws,
	})
	require.NoError(t, err)
	return l
}

// Servers reads nginx's server lines, each without the word server.
func Servers(t TB, lines ...string) []peer.Server {
	servers := make([]peer.Server, len(lines))
	for i, line := range lines {
		require.NoError(t, parse(&servers[i], line), "server %s", line)
	}
	return servers
}

func parse(s *peer.Server, line string) (err error) {
	words := strings.Fields(line)
	s.Addr = words[0]
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "weight":
			s.Weight, err = strconv.Atoi(value)
		case "max_conns":
			s.MaxConns, err = strconv.Atoi(value)
		case "max_fails":
			if s.MaxFails, err = strconv.Atoi(value); s.MaxFails == 0 {
				s.MaxFails = peer.NoMaxFails
			}
		case "fail_timeout":
			if s.FailTimeout, err = time.ParseDuration(value); s.FailTimeout == 0 {
				s.FailTimeout = peer.NoFailTimeout
			}
		case "route":
			s.Route = value
		case "backup":
			s.Backup = true
		case "down":
			s.Down = true
		case "drain":
			s.Drain = true
		default:
			err = fmt.Errorf("no such parameter: %s", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Advance lets time pass.
func (l *Trial) Advance(d time.Duration) { l.now += d }

// SetClock sets the time since the Unix epoch.
func (l *Trial) SetClock(d time.Duration) { l.now = d }

// SetDraws sets the next random numbers, of 31 bits each.
func (l *Trial) SetDraws(numbers ...uint32) { l.draws.set = numbers }

// Drawn returns how many random numbers have been drawn.
func (l *Trial) Drawn() int { return l.draws.drawn }

// A Try is one request of a Trial.
type Try struct {
	peer.Request
	l *Trial
}

// Begin starts a request, with what set says of it (nil: nothing).
func (l *Trial) Begin(set func(*peer.Request)) *Try {
	r := &Try{l: l}
	if set != nil {
		set(&r.Request)
	}
	require.NoError(l.t, l.Upstream.Begin(&r.Request))
	return r
}

// Get gets a peer and returns its address, or Busy.
func (r *Try) Get() string {
	if err := r.l.Upstream.Get(&r.Request); err != nil {
		require.True(r.l.t, errors.Is(err, peer.ErrNoLivePeers), "get: %v", err)
		return Busy
	}
	p, ok := r.l.Peer(&r.Request)
	require.True(r.l.t, ok)
	return p.Server.Addr
}

// Free ends the attempt.
func (r *Try) Free(o peer.Outcome) {
	require.NoError(r.l.t, r.l.Upstream.Free(&r.Request, o))
}

// Header reports the response header.
func (r *Try) Header() {
	require.NoError(r.l.t, r.l.Upstream.Header(&r.Request))
}

// One makes a request of one attempt, and returns the peer's address, or Busy.
func (l *Trial) One(o peer.Outcome, set func(*peer.Request)) string {
	r := l.Begin(set)
	name := r.Get()
	if name != Busy {
		r.Free(o)
	}
	return name
}

// Hold makes a request and lets it hold its peer.
func (l *Trial) Hold() (*Try, string) {
	r := l.Begin(nil)
	return r, r.Get()
}

// HoldOn makes a request that goes on, as after a 404, until it holds the peer
// with that address.
func (l *Trial) HoldOn(addr string, set func(*peer.Request)) *Try {
	r := l.Begin(set)
	for name := r.Get(); name != addr; name = r.Get() {
		require.NotEqual(l.t, Busy, name, "%s is not available", addr)
		r.Free(peer.Next)
	}
	return r
}

// Picks makes n requests, one after the other, that go well.
func (l *Trial) Picks(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = l.One(peer.OK, nil)
	}
	return strings.Join(names, " ")
}

// Share makes n such requests and counts them by peer.
func (l *Trial) Share(n int) map[string]int {
	share := map[string]int{}
	for range n {
		share[l.One(peer.OK, nil)]++
	}
	return share
}

// Through makes one request that gets and frees with an outcome until there is
// no peer left for it, and returns the addresses.
func (l *Trial) Through(o peer.Outcome, set func(*peer.Request)) string {
	r := l.Begin(set)
	var names []string
	for {
		name := r.Get()
		names = append(names, name)
		if name == Busy {
			return strings.Join(names, " ")
		}
		r.Free(o)
		require.Less(l.t, len(names), 10_000, "the request never ends")
	}
}

// Of returns the state of the first peer with an address.
func (l *Trial) Of(addr string) peer.State {
	for group := range 2 {
		for i := range l.Set().Len(group) {
			if l.Set().Server(group, i).Addr == addr {
				return l.State(group, i)
			}
		}
	}
	require.Fail(l.t, "no such peer: "+addr)
	return peer.State{}
}

// States returns the states of all peers, primary before backup.
func (l *Trial) States() []peer.State {
	var list []peer.State
	for group := range 2 {
		for i := range l.Set().Len(group) {
			list = append(list, l.State(group, i))
		}
	}
	return list
}

// CurrentWeights are those of the primary peers.
func (l *Trial) CurrentWeights() []int64 {
	return l.each(func(s peer.State) int64 { return s.CurrentWeight })
}

// EffectiveWeights are those of the primary peers.
func (l *Trial) EffectiveWeights() []int64 {
	return l.each(func(s peer.State) int64 { return s.EffectiveWeight })
}

func (l *Trial) each(field func(peer.State) int64) []int64 {
	list := make([]int64, l.Set().Len(peer.Primary))
	for i := range list {
		list[i] = field(l.State(peer.Primary, i))
	}
	return list
}
