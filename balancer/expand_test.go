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
