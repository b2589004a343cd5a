package balancer_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

func TestExpand(t *testing.T) {
	lookup := func(host string) ([]netip.Addr, error) {
		if host != "app.example" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("10.0.0.7")}, nil
	}
	got, err := balancer.Expand([]balancer.Server{
		{Addr: "app.example", Weight: 3, Backup: true},
		{Addr: "010.0.0.1:080", Name: "x"},
		{Addr: "unix:/run/a.sock"},
		{Addr: "app.example", Resolve: true},
	}, lookup)
	require.NoError(t, err)
	assert.Equal(t, []balancer.Server{
		{Addr: "[2001:db8::1]:80", Name: "app.example", Weight: 3, Backup: true},
		{Addr: "10.0.0.7:80", Name: "app.example", Weight: 3, Backup: true},
		{Addr: "10.0.0.1:80", Name: "x"},
		{Addr: "unix:/run/a.sock", Name: "unix:/run/a.sock"},
		{Addr: "app.example:80", Name: "app.example", Resolve: true},
	}, got)

	_, err = balancer.Expand([]balancer.Server{{Addr: "10.0.0.1"}, {Addr: "other.example"}}, lookup)
	var resolve *balancer.ResolveError
	require.ErrorAs(t, err, &resolve)
	assert.Equal(t, 1, resolve.Server)
	_, err = balancer.Expand([]balancer.Server{{Addr: "a:0"}}, lookup)
	var config *balancer.ConfigError
	require.ErrorAs(t, err, &config)
	assert.Equal(t, "Addr", config.Field)
}

func TestAddressesThatAreRefusedHaveAHint(t *testing.T) {
	for addr, hint := range map[string]string{
		"fd00::1":           "an IPv6 address is written in brackets: [fd00::1]",
		"[fe80::1%eth0]:80": "",
		"fe80::1%eth0":      "a zone is no part of an address here",
		"http://10.0.0.1":   "write host:port, without a scheme",
	} {
		_, err := balancer.New(t.Context(), balancer.Config{Servers: []balancer.Server{{Addr: addr}}})
		var config *balancer.ConfigError
		require.ErrorAs(t, err, &config, addr)
		assert.Contains(t, config.Reason, hint, addr)
	}
}

// Two hosts that have one list in two orders give a client the same peer, if both put
// it in order.
func TestCanonical(t *testing.T) {
	a := []balancer.Server{{Addr: "b:80"}, {Addr: "10.0.0.2"}, {Addr: "10.0.0.1:80", Weight: 2}}
	b := []balancer.Server{a[2], a[0], a[1]}
	assert.Equal(t, balancer.Canonical(a), balancer.Canonical(b))
	assert.Equal(t, "b:80", a[0].Addr, "the list itself is left alone")
}
