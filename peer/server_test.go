package peer_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/parity/machine"
	"github.com/trunklb/trunk/internal/pick"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// What is refused is named: the server, the field and its value.
func TestConfigErrors(t *testing.T) {
	type servers = []peer.Server
	a := peer.Server{Addr: "a:80"}
	backup := peer.Server{Addr: "b:80", Backup: true}
	tests := []struct {
		name       string
		servers    servers
		resolution time.Duration
		server     int
		field      string
		value      any
	}{
		{name: "no address", servers: servers{a, {Weight: 1}}, server: 1, field: "Addr", value: `""`},
		{name: "negative weight", servers: servers{{Addr: "a", Weight: -1}}, server: 0, field: "Weight", value: -1},
		{name: "negative max_conns", servers: servers{a, a, {Addr: "a", MaxConns: -7}}, server: 2, field: "MaxConns", value: -7},
		{name: "max_fails below NoMaxFails", servers: servers{{Addr: "a", MaxFails: -2}}, field: "MaxFails", value: -2},
		{name: "fail_timeout below NoFailTimeout", servers: servers{{Addr: "a", FailTimeout: -time.Second}},
			field: "FailTimeout", value: -time.Second},
		{name: "fail_timeout finer than a second", servers: servers{{Addr: "a", FailTimeout: 1500 * time.Millisecond}},
			field: "FailTimeout", value: 1500 * time.Millisecond},
		{name: "fail_timeout finer than the resolution", servers: servers{{Addr: "a", FailTimeout: 1505 * time.Millisecond}},
			resolution: 10 * time.Millisecond, field: "FailTimeout", value: 1505 * time.Millisecond},
		{name: "route too long", servers: servers{{Addr: "a", Route: strings.Repeat("r", 33)}},
			field: "Route", value: `"` + strings.Repeat("r", 33) + `"`},
		{name: "TLS name with a space", servers: servers{a, {Addr: "b", TLSName: "a b"}}, server: 1, field: "TLSName", value: `"a b"`},
		{name: "header in a host", servers: servers{{Addr: "a", Host: "a\r\nX: y"}}, field: "Host", value: `"a\r\nX: y"`},
		{name: "zone that is no text", servers: servers{{Addr: "a", Zone: "a\xff"}}, field: "Zone", value: `"a\xff"`},
		{name: "slow start too short", servers: servers{{Addr: "a", SlowStart: 1}}, field: "SlowStart", value: time.Duration(1)},
		{name: "negative slow start", servers: servers{{Addr: "a", SlowStart: -time.Second}}, field: "SlowStart", value: -time.Second},
		{name: "label without a name", servers: servers{{Addr: "a", Labels: peer.Labels{}.With("", "v")}}, field: "Labels", value: `"=v"`},
		{name: "label that is no text", servers: servers{{Addr: "a", Labels: peer.Labels{}.With("n", "\xff")}}, field: "Labels", value: `"n=\xff"`},
		{name: "weights of the primaries overflow", servers: servers{a, {Addr: "b", Weight: math.MaxInt}},
			server: 1, field: "Weight", value: math.MaxInt},
		{name: "weights of the backups overflow", servers: servers{a, backup, {Addr: "c", Weight: math.MaxInt, Backup: true}},
			server: 2, field: "Weight", value: math.MaxInt},
		{name: "no servers", servers: nil, server: -1, field: "Servers", value: "0 servers"},
		{name: "only backups", servers: servers{backup, backup}, server: -1, field: "Servers", value: "2 servers"},
		{name: "resolution too fine", servers: servers{a}, resolution: 500 * time.Microsecond,
			server: -1, field: "Resolution", value: 500 * time.Microsecond},
		{name: "resolution too coarse", servers: servers{a}, resolution: 2 * time.Second,
			server: -1, field: "Resolution", value: 2 * time.Second},
		{name: "resolution that does not divide a second", servers: servers{a}, resolution: 3 * time.Millisecond,
			server: -1, field: "Resolution", value: 3 * time.Millisecond},
		{name: "negative resolution", servers: servers{a}, resolution: -time.Second,
			server: -1, field: "Resolution", value: -time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.value == math.MaxInt && strconv.IntSize < 64 {
				t.Skip("no weights are so great")
			}
			u, err := peer.New(test.servers, nil, &peer.Options{Resolution: test.resolution})
			require.Nil(t, u)
			var refused *peer.ConfigError
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.Reason)
			require.Equal(t, peer.ConfigError{
				Server: test.server, Field: test.field, Value: test.value, Reason: refused.Reason}, *refused)

			where := "trunk: " + test.field + ": "
			if test.server >= 0 {
				where = fmt.Sprintf("trunk: servers[%d].%s: ", test.server, test.field)
			}
			require.True(t, strings.HasPrefix(err.Error(), where), "%q starts with %q", err, where)
			require.Contains(t, err.Error(), fmt.Sprint(test.value))
		})
	}
}

// What a Method's Build refuses, New returns.
func TestBuildError(t *testing.T) {
	u, err := peer.New([]peer.Server{{Addr: "a"}}, unbuildable{}, nil)
	require.Nil(t, u)
	require.ErrorIs(t, err, errUnbuildable)
}

var errUnbuildable = errors.New("no")

type unbuildable struct{}

func (unbuildable) Build(*peer.Set) (peer.Selector, error) { return peer.Selector{}, errUnbuildable }
func (unbuildable) Describe() peer.Description             { return peer.Description{} }

// A method that builds nothing is refused, alone and beneath sticky, and not found out at the
// first request.
func TestNoSelector(t *testing.T) {
	for name, m := range map[string]peer.Method{"alone": idler{}, "beneath sticky": sticky.Over(idler{})} {
		_, err := peer.New([]peer.Server{{Addr: "a"}}, m, nil)
		var e *peer.ConfigError
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, "Method", e.Field)
	}
}

type idler struct{}

func (idler) Build(*peer.Set) (peer.Selector, error) { return peer.Selector{}, nil }
func (idler) Describe() peer.Description             { return peer.Description{} }

// The zero values are nginx's defaults; nginx's own zeros have names.
func TestDefaults(t *testing.T) {
	tests := []struct {
		name  string
		given peer.Server
		want  peer.Server
	}{
		{"all defaults",
			peer.Server{Addr: "a:80"},
			peer.Server{Addr: "a:80", Name: "a:80", Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second}},
		{"nginx's zeros",
			peer.Server{Addr: "a:80", MaxFails: peer.NoMaxFails, FailTimeout: peer.NoFailTimeout},
			peer.Server{Addr: "a:80", Name: "a:80", Weight: 1, MaxFails: 0, FailTimeout: 0}},
		{"all given",
			peer.Server{Addr: "a:80", Name: "host", Weight: 7, MaxConns: 3, MaxFails: 2, FailTimeout: time.Minute, Down: true, Route: "r"},
			peer.Server{Addr: "a:80", Name: "host", Weight: 7, MaxConns: 3, MaxFails: 2, FailTimeout: time.Minute, Down: true, Route: "r"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			given := []peer.Server{test.given}
			u, err := peer.New(given, nil, nil)
			require.NoError(t, err)
			require.Equal(t, test.want, u.Set().Server(peer.Primary, 0))
			require.Equal(t, test.given, given[0], "the caller's list is not changed")
		})
	}
}

// The same server twice is two peers.
func TestDuplicateServers(t *testing.T) {
	lb := machine.NewTrial(t, nil, "a", "a", "b")
	require.Equal(t, 3, lb.Set().Len(peer.Primary))
	require.Equal(t, map[string]int{"a": 20, "b": 10}, lb.Share(30))
}

// A set is the servers in their groups, each group in the list's order.
func TestSet(t *testing.T) {
	set, err := peer.NewSet([]peer.Server{
		{Addr: "127.0.0.1:9001", Weight: 3}, {Addr: "b", Backup: true, Weight: 2},
		{Addr: "c", Down: true, Route: "route-c"}, {Addr: "d", Backup: true},
	}, 0)
	require.NoError(t, err)
	require.Equal(t, 2, set.Len(peer.Primary))
	require.Equal(t, 2, set.Len(peer.Backup))
	require.Equal(t, "c", set.Server(peer.Primary, 1).Addr)
	require.Equal(t, "d", set.Server(peer.Backup, 1).Addr)
	require.EqualValues(t, 4, set.TotalWeight(peer.Primary), "down peers count")
	require.EqualValues(t, 3, set.TotalWeight(peer.Backup))
	require.Equal(t, "422db4e6da7b4bba46bd476612df0469", set.SID(peer.Primary, 0), "the MD5 of its address")
	require.Equal(t, "route-c", set.SID(peer.Primary, 1))

	_, err = peer.NewSet([]peer.Server{{Addr: "a", FailTimeout: time.Millisecond}}, time.Millisecond)
	require.NoError(t, err)
	_, err = peer.NewSet([]peer.Server{{Addr: "a", FailTimeout: time.Millisecond}}, 0)
	require.Error(t, err)
}

// Ranges give each peer as many numbers as its weight.
func TestRanges(t *testing.T) {
	set, err := peer.NewSet(machine.Servers(t, "a weight=2", "b down", "c weight=3", "d backup"), 0)
	require.NoError(t, err)
	primary := pick.NewRanges(set, peer.Primary)
	for x, want := range []int{0, 0, 1, 2, 2, 2} {
		require.Equal(t, want, primary.At(int64(x)), "%d", x)
	}
	require.Equal(t, 0, pick.NewRanges(set, peer.Backup).At(0))
}

// max_fails takes w / max_fails from the effective weight for as great numbers
// as can be configured.
func TestGreatMaxFails(t *testing.T) {
	for _, test := range []struct {
		weight, maxFails int
		want             int64
	}{
		{math.MaxInt32, math.MaxInt32, 1},
		{math.MaxInt32, math.MaxInt32 - 1, 1},
		{math.MaxInt32 - 1, math.MaxInt32, 0},
		{math.MaxInt32 - 1, math.MaxInt, 0},
	} {
		t.Run(fmt.Sprintf("%d / %d", test.weight, test.maxFails), func(t *testing.T) {
			lb := machine.NewTrialOf(t, nil, []peer.Server{
				{Addr: "a", Weight: test.weight, MaxFails: test.maxFails}, {Addr: "b", Backup: true}})
			require.Equal(t, "a", lb.One(peer.Failed, nil))
			require.Equal(t, test.want, int64(test.weight)-lb.Of("a").EffectiveWeight)
		})
	}
}
