package sticky_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/roundrobin"
	"github.com/trunklb/trunk/sticky"
)

// methods are all methods that there are.
var methods = []struct {
	name   string
	method peer.Method
}{
	{"none", nil},
	{"round robin", roundrobin.New()},
	{"least_conn", leastconn.New()},
	{"least_time header", leasttime.New(leasttime.Header)},
	{"least_time last_byte inflight", leasttime.Method{Mode: leasttime.LastByte, Inflight: true}},
	{"hash", hash.New("$arg_k")},
	{"hash consistent", hash.NewConsistent("$arg_k")},
	{"ip_hash", iphash.New()},
	{"random", random.New()},
	{"random two", random.NewTwo()},
}

// to gives a request a hint.
func to(sid string) func(*peer.Request) {
	return func(r *peer.Request) { r.Key, r.Hint = "key", sid }
}

// TestHintedPeerIsTaken holds for every method, whatever it would have picked.
func TestHintedPeerIsTaken(t *testing.T) {
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			l := machine.NewTrial(t, sticky.Over(m.method), "a route=ra", "b route=rb weight=3", "c")
			for range 20 {
				require.Equal(t, "a", l.One(peer.OK, to("ra")))
				require.Equal(t, "b", l.One(peer.OK, to("rb")))
				require.Equal(t, "c", l.One(peer.OK, to("4a8a08f09d37b73795649038408b5f33")), "without a route: the MD5 of the address")
			}
		})
	}
}

// TestOtherRequestsAreTheMethods says that without a hint, or with one that
// means nobody, the method picks as if it were alone.
func TestOtherRequestsAreTheMethods(t *testing.T) {
	servers := []string{"a route=ra weight=5", "b route=rb max_conns=3", "c weight=2 max_fails=2"}
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			alone := machine.NewTrial(t, m.method, servers...)
			over := machine.NewTrial(t, sticky.Over(m.method), servers...)
			for i := range 200 {
				strange := []string{"", "nobody", "RA", "ra ", strings.Repeat("r", 33), "\x00", strings.Repeat("x", 1<<16)}[i%7]
				outcome := []peer.Outcome{peer.OK, peer.OK, peer.Failed}[i%3]
				require.Equal(t, alone.One(outcome, to("")), over.One(outcome, to(strange)))
				require.Equal(t, alone.States(), over.States())
			}
		})
	}
}

// TestWhenTheHintedPeerCannotBeHad tells what keeps a bound request away from
// its peer, and what does not.
func TestWhenTheHintedPeerCannotBeHad(t *testing.T) {
	tests := []struct {
		name   string
		server string
		want   string
	}{
		{"it can", "b route=r", "b"},
		{"down", "b route=r down", "a"},
		{"draining", "b route=r drain", "b"},
		{"draining and down", "b route=r drain down", "a"},
		{"in the backup group", "b route=r backup", "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, m := range methods {
				l := machine.NewTrial(t, sticky.Over(m.method), "a", test.server)
				require.Equal(t, test.want, l.One(peer.OK, to("r")), m.name)
			}
		})
	}
	t.Run("failed", func(t *testing.T) {
		l := machine.NewTrial(t, sticky.Over(nil), "a", "b route=r")
		require.Equal(t, "b", l.One(peer.Failed, to("r")))
		require.Equal(t, "a", l.One(peer.OK, to("r")))
	})
	t.Run("full", func(t *testing.T) {
		l := machine.NewTrial(t, sticky.Over(nil), "a", "b route=r max_conns=1")
		first := l.Begin(to("r"))
		require.Equal(t, "b", first.Get())
		require.Equal(t, "a", l.One(peer.OK, to("r")))
		first.Free(peer.OK)
		require.Equal(t, "b", l.One(peer.OK, to("r")))
	})
	t.Run("tried in this request", func(t *testing.T) {
		l := machine.NewTrial(t, sticky.Over(nil), "a", "b route=r max_fails=0")
		require.Equal(t, "b a BUSY", l.Through(peer.Failed, to("r")))
	})
	t.Run("only the first of that sid counts", func(t *testing.T) {
		l := machine.NewTrial(t, sticky.Over(nil), "a weight=9", "b route=r down", "c route=r")
		require.Equal(t, "a a a", l.One(peer.OK, to("r"))+" "+l.One(peer.OK, to("r"))+" "+l.One(peer.OK, to("r")))
	})
}

// TestBackupIsFoundInItsGroup says that the sid of a backup counts once the
// request is among the backups, and the one hint goes on through all attempts.
func TestBackupIsFoundInItsGroup(t *testing.T) {
	l := machine.NewTrial(t, sticky.Over(nil), "a", "x backup", "y backup", "z backup route=r")
	require.Equal(t, "a z x y BUSY", l.Through(peer.Next, to("r")))
}

// TestDrainingPeerThatFails is quirk Q5: it was not counted in the tries, so
// that they end one too early.
func TestDrainingPeerThatFails(t *testing.T) {
	l := machine.NewTrial(t, sticky.Over(nil), "a drain route=r", "b")
	r := l.Begin(to("r"))
	require.Equal(t, 1, r.Tries())
	require.Equal(t, "a", r.Get())
	r.Free(peer.Failed)
	require.Equal(t, 0, r.Tries())
}

// TestRoundRobinCharges says who pays for a hinted peer: the peer itself, until
// the valve opens.
func TestRoundRobinCharges(t *testing.T) {
	l := machine.NewTrial(t, sticky.Over(nil), "a route=ra weight=5", "b", "c")
	want := [][]int64{{-2, 1, 1}, {-2, 1, 1}}
	for _, cw := range want {
		require.Equal(t, "a", l.One(peer.OK, to("ra")))
		require.Equal(t, cw, l.CurrentWeights())
	}
	require.Equal(t, "a b a c a a a", l.Picks(7))
}

// TestHintsFollowTheSet says that hints are resolved in the set as it is, also
// by requests that have begun before it changed.
func TestHintsFollowTheSet(t *testing.T) {
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			l := machine.NewTrial(t, sticky.Over(m.method), "a route=ra", "b route=rb")
			begun := l.Begin(to("rc"))
			require.NoError(t, l.Update(machine.Servers(t, "c route=rc", "d route=rd", "b route=rb")))
			require.Equal(t, "c", begun.Get())
			begun.Free(peer.OK)
			require.Equal(t, "b", l.One(peer.OK, to("rb")))
			require.NotEqual(t, machine.Busy, l.One(peer.OK, to("ra")), "removed: as if there were no hint")
			require.NoError(t, l.Update(machine.Servers(t, "d route=rd", "a route=ra drain")))
			require.Equal(t, "a", l.One(peer.OK, to("ra")))
		})
	}
}

// TestOverLosesNothing says that a binding over a method keeps all that the method is, needs
// and wants to know, and adds nothing.
func TestOverLosesNothing(t *testing.T) {
	set, err := peer.NewSet([]peer.Server{{Addr: "a"}, {Addr: "b"}}, 0)
	require.NoError(t, err)
	for _, m := range methods[1:] {
		inner, err := m.method.Build(set)
		require.NoError(t, err)
		over, err := sticky.Over(m.method).Build(set)
		require.NoError(t, err)
		require.NotNil(t, over.Bind)
		require.Equal(t, described(m.method), described(sticky.Over(m.method)))
		// Each function that one has the other has too.
		got, want := reflect.ValueOf(over), reflect.ValueOf(inner)
		for i := range want.NumField() {
			if name := want.Type().Field(i).Name; name != "Bind" {
				require.Equal(t, want.Field(i).IsZero(), got.Field(i).IsZero(), "%s: %s", m.name, name)
			}
		}
	}
}

// described is a method's Description, but for the function in it.
func described(m peer.Method) peer.Description {
	d := peer.Describe(m)
	d.Lint = nil
	return d
}

func TestBuildErrorIsTheMethods(t *testing.T) {
	_, err := peer.New([]peer.Server{{Addr: "a"}}, sticky.Over(hash.New("")), nil)
	require.ErrorIs(t, err, hash.ErrNoKey)
}

// fixed is a method that binds every request to the peer with an index.
type fixed int

func (f fixed) Build(*peer.Set) (peer.Selector, error) {
	return peer.Selector{
		Pick: func(*peer.Group, *peer.Request, peer.Now) int { return peer.RoundRobin },
		Bind: func(*peer.Group, *peer.Request, peer.Now) int { return int(f) },
	}, nil
}
func (fixed) Describe() peer.Description { return peer.Description{} }

// TestMethodMayBindToo says that a method's own binding holds where there is no hint.
func TestMethodMayBindToo(t *testing.T) {
	l := machine.NewTrial(t, sticky.Over(fixed(1)), "a route=ra", "b", "c")
	require.Equal(t, "b b b", l.Picks(3))
	require.Equal(t, "a", l.One(peer.OK, to("ra")))
}

// TestGetAllocatesNothing holds for hints of every kind.
func TestGetAllocatesNothing(t *testing.T) {
	for _, m := range methods {
		l := machine.NewTrial(t, sticky.Over(m.method), "a route=ra", "b route=rb", "c")
		for _, sid := range []string{"", "rb", "nobody"} {
			var r peer.Request
			r.Key, r.Hint = "key", sid
			require.Zero(t, testing.AllocsPerRun(100, func() {
				if l.Upstream.Begin(&r) != nil || l.Get(&r) != nil || l.Upstream.Free(&r, peer.OK) != nil {
					t.Fatal("refused")
				}
			}), "%s, hint %q", m.name, sid)
		}
	}
}

func BenchmarkGetFree(b *testing.B) {
	b.Run("round robin alone", func(b *testing.B) { machine.BenchGetFree(b, nil, 10) })
	b.Run("without a hint", func(b *testing.B) { machine.BenchGetFree(b, sticky.Over(nil), 10) })
	b.Run("least_conn, hinted", func(b *testing.B) {
		l := machine.NewTrial(&testing.T{}, sticky.Over(leastconn.New()), "a", "b route=rb", "c", "d", "e", "f", "g", "h", "i", "j")
		r := peer.Request{Hint: "rb"}
		b.ReportAllocs()
		for b.Loop() {
			if l.Upstream.Begin(&r) != nil || l.Get(&r) != nil || l.Upstream.Free(&r, peer.OK) != nil {
				b.Fatal("refused")
			}
		}
	})
}
