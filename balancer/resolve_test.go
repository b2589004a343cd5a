package balancer_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

// names is a resolver that knows some names.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip" {
		return nil, errors.New("network " + network)
	}
	if n[host] == nil {
		return nil, errors.New("no such host")
	}
	var out []netip.Addr
	for _, s := range n[host] {
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}

// A name is one peer per address, in the resolver's order, each with the whole weight
// and the name of its line; what is numeric never reaches the resolver.
func TestResolve(t *testing.T) {
	known := names{"app": {"::1", "10.0.0.1", "::ffff:10.0.0.2"}}
	for _, tc := range []struct {
		addr string
		want []string
	}{
		{"app:8080", []string{"[::1]:8080", "10.0.0.1:8080", "10.0.0.2:8080"}},
		{"app", []string{"[::1]:80", "10.0.0.1:80", "10.0.0.2:80"}},
		{"10.0.0.9:81", []string{"10.0.0.9:81"}},
		{"10.0.0.9", []string{"10.0.0.9:80"}},
		{"010.0.0.9", []string{"10.0.0.9:80"}},
		{"10.1", []string{"10.0.0.1:80"}},
		{"[::ffff:10.0.0.9]", []string{"[::ffff:10.0.0.9]:80"}},
		{"UNIX:/run/s", []string{"UNIX:/run/s"}},
		{"[2001:db8::1]:81", []string{"[2001:db8::1]:81"}},
		{"unix:/run/s", []string{"unix:/run/s"}},
	} {
		up, err := balancer.New(context.Background(), balancer.Config{Resolver: known,
			Servers: []balancer.Server{{Addr: tc.addr, Weight: 3}}})
		require.NoError(t, err, tc.addr)
		var got []string
		for _, s := range up.Snapshot().Peers {
			got = append(got, s.Server.Addr)
			require.Equal(t, tc.addr, s.Server.Name)
			require.Equal(t, 3, s.Server.Weight)
		}
		require.Equal(t, tc.want, got)
	}

	_, err := balancer.New(context.Background(), balancer.Config{Resolver: known,
		Servers: []balancer.Server{{Addr: "10.0.0.1:80"}, {Addr: "nobody:1"}}})
	var unknown *balancer.ResolveError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, 1, unknown.Server)
	require.Equal(t, "nobody", unknown.Host)
}

// What New refuses, by field.
func TestConfigErrors(t *testing.T) {
	good := []balancer.Server{{Addr: "10.0.0.1:80"}}
	for field, c := range map[string]balancer.Config{
		"Servers":                {},
		"Weight":                 {Servers: []balancer.Server{{Addr: "10.0.0.1:80", Weight: -1}}},
		"Addr":                   {Servers: []balancer.Server{{}}},
		"Keepalive":              {Servers: good, Keepalive: -2},
		"KeepaliveTimeout":       {Servers: good, KeepaliveTimeout: -2},
		"Resolution":             {Servers: good, Resolution: 1},
		"ResolveInterval":        {Servers: good, ResolveInterval: -1},
		"ResolveTimeout":         {Servers: good, ResolveTimeout: -1},
		"Service":                {Servers: []balancer.Server{{Addr: "app", Service: "http"}}},
		"Retry.On":               {Servers: good, Retry: balancer.Retry{On: 1 << 15}},
		"Retry.Counts":           {Servers: good, Retry: balancer.Retry{Counts: 1 << 15}},
		"Retry.Tries":            {Servers: good, Retry: balancer.Retry{Tries: -1}},
		"Retry.Timeout":          {Servers: good, Retry: balancer.Retry{Timeout: -1}},
		"Retry.ConnectTimeout":   {Servers: good, Retry: balancer.Retry{ConnectTimeout: -1}},
		"Retry.SendTimeout":      {Servers: good, Retry: balancer.Retry{SendTimeout: -1}},
		"Retry.ReadTimeout":      {Servers: good, Retry: balancer.Retry{ReadTimeout: -1}},
		"Retry.BufferBody":       {Servers: good, Retry: balancer.Retry{BufferBody: -1}},
		"Retry.DeadlineCounts":   {Servers: good, Retry: balancer.Retry{DeadlineCounts: -2}},
		"Retry.Budget.Share":     {Servers: good, Retry: balancer.Retry{Budget: balancer.Budget{Share: -1}}},
		"Retry.Budget.PerSecond": {Servers: good, Retry: balancer.Retry{Budget: balancer.Budget{PerSecond: -1}}},
	} {
		_, err := balancer.New(context.Background(), c)
		var e *balancer.ConfigError
		require.ErrorAs(t, err, &e, field)
		require.Equal(t, field, e.Field)
	}
	_, err := balancer.New(context.Background(), balancer.Config{Servers: []balancer.Server{{Addr: "http://10.0.0.1:80"}}})
	require.EqualError(t, err, "trunk: servers[0].Addr: invalid host; write host:port, without a scheme (got http://10.0.0.1:80)")
}
