package balancer_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
)

// families is a resolver with an answer for each family of addresses: "ip4" and "ip6".
type families map[string]func(context.Context) ([]netip.Addr, error)

func (f families) LookupNetIP(ctx context.Context, network, _ string) ([]netip.Addr, error) {
	return f[network](ctx)
}

func ips(list ...string) func(context.Context) ([]netip.Addr, error) {
	return func(context.Context) (out []netip.Addr, _ error) {
		for _, s := range list {
			out = append(out, netip.MustParseAddr(s))
		}
		return out, nil
	}
}

func fails(err error) func(context.Context) ([]netip.Addr, error) {
	return func(context.Context) ([]netip.Addr, error) { return nil, err }
}

func silent(ctx context.Context) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A family that cannot be looked up keeps its last good addresses, whatever the other
// family's answer is; one that does not exist has none.
func TestEachFamilyKeepsItsLastGoodAddresses(t *testing.T) {
	gone := fails(&net.DNSError{Err: "no such host", IsNotFound: true})
	broken := fails(&net.DNSError{Err: "server misbehaving", IsTemporary: true})
	panics := func(context.Context) ([]netip.Addr, error) { panic("resolver") }
	const before = "10.0.0.1:80 10.0.0.2:80 [::1]:80"
	for _, test := range []struct {
		name     string
		ip4, ip6 func(context.Context) ([]netip.Addr, error)
		want     string
		events   string
	}{
		{"A is SERVFAIL, AAAA good", broken, ips("::1"), before, "app error"},
		{"A is refused, AAAA good and new", fails(errors.New("refused")), ips("::2"), "10.0.0.1:80 10.0.0.2:80 [::2]:80", "set; app +::2 -::1; app error"},
		{"A is silent, AAAA good", silent, ips("::1"), before, "app error"},
		{"A panics, AAAA good", panics, ips("::1"), before, "app error"},
		{"A good, AAAA is SERVFAIL", ips("10.0.0.2"), broken, "10.0.0.2:80 [::1]:80", "set; app -10.0.0.1; app error"},
		{"A good, AAAA does not exist", ips("10.0.0.1", "10.0.0.2"), gone, "10.0.0.1:80 10.0.0.2:80", "set; app -::1"},
		{"A is empty, AAAA good", ips(), ips("::1"), "[::1]:80", "set; app -10.0.0.1 -10.0.0.2"},
		{"neither exists", gone, gone, before, "app error"},
		{"neither has records", ips(), ips(), before, "app error"},
		{"A does not exist, AAAA is SERVFAIL", gone, broken, "[::1]:80", "set; app -10.0.0.1 -10.0.0.2; app error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var later atomic.Bool
				then := func(first, second func(context.Context) ([]netip.Addr, error)) func(context.Context) ([]netip.Addr, error) {
					return func(ctx context.Context) ([]netip.Addr, error) {
						if later.Load() {
							return second(ctx)
						}
						return first(ctx)
					}
				}
				l, r := &told{}, families{"ip4": then(ips("10.0.0.1", "10.0.0.2"), test.ip4), "ip6": then(ips("::1"), test.ip6)}
				up := newUpstream(t, balancer.Config{Servers: []balancer.Server{{Addr: "app", Resolve: true}}, Resolver: r,
					OnEvent: l.add, ResolveInterval: time.Hour})
				require.Equal(t, before, addrs(up))
				later.Store(true)
				time.Sleep(67 * time.Minute) // an interval, and the timeout
				synctest.Wait()
				require.Equal(t, test.want, addrs(up))
				require.Equal(t, test.events, l.take())
				require.NoError(t, up.Close())
			})
		})
	}
}

// ResolveTimeout holds in New and Update too.
func TestUpdateWithAResolverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := families{"ip": silent, "ip4": silent, "ip6": silent}
		up := newUpstream(t, balancer.Config{Servers: []balancer.Server{{Addr: "10.0.0.1"}}, Resolver: hangs, ResolveTimeout: time.Minute})
		for _, server := range []balancer.Server{{Addr: "app"}, {Addr: "app", Resolve: true}} {
			start := time.Now()
			err := up.Update(context.Background(), []balancer.Server{server})
			var unknown *balancer.ResolveError
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, "app", unknown.Host)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Minute, time.Since(start))

			_, err = balancer.New(context.Background(), balancer.Config{Servers: []balancer.Server{server}, Resolver: hangs})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 90*time.Second, time.Since(start), "30 s by default")
		}
		require.Equal(t, "10.0.0.1:80", addrs(up))
	})
}

// A link-local address keeps the zone without which it cannot be dialled.
func TestAddressWithAZone(t *testing.T) {
	for _, resolve := range []bool{false, true} {
		r := families{"ip": ips("fe80::1%eth0"), "ip4": ips(), "ip6": ips("fe80::1%eth0")}
		up := newUpstream(t, balancer.Config{Servers: []balancer.Server{{Addr: "app:81", Resolve: resolve}}, Resolver: r})
		require.Equal(t, "[fe80::1%eth0]:81", addrs(up))
	}
}
