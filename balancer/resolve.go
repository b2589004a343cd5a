package balancer

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Resolver looks up host names. *net.Resolver is one.
type Resolver interface {
	// LookupNetIP returns the addresses of a host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Verbatim as Config.Resolver looks nothing up: every name is one peer, whose
// address is the name as it stands, for a transport with a dialler of its own,
// and for tests.
var Verbatim Resolver = verbatim{}

type verbatim struct{}

func (verbatim) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, fmt.Errorf("trunk: the Verbatim resolver looks nothing up")
}

// A ResolveError says which server's name could not be looked up. Unwrap
// returns the resolver's error.
type ResolveError struct {
	// Server is the index in Config.Servers, Host the name.
	Server int
	Host   string
	Err    error
}

func (e *ResolveError) Error() string {
	return fmt.Sprintf("trunk: servers[%d].Addr: host not found: %q: %v", e.Server, e.Host, e.Err)
}

func (e *ResolveError) Unwrap() error { return e.Err }

// resolve returns the servers with every host name replaced by its addresses (see
// Expand): IPv4 first, as nginx has them. Resolve and Service are the membership's, and
// a name with resolve is looked up once like any other.
func resolve(ctx context.Context, r Resolver, servers []Server) ([]Server, error) {
	if r == Verbatim {
		return servers, nil
	}
	if r == nil {
		r = net.DefaultResolver
	}
	once := make([]Server, len(servers))
	for i, s := range servers {
		if s.Service != "" {
			return nil, &ConfigError{Server: i, Field: "Service", Value: s.Service, Reason: "SRV records are not looked up yet"}
		}
		s.Resolve = false
		once[i] = s
	}
	return Expand(once, func(host string) ([]netip.Addr, error) {
		ips, err := r.LookupNetIP(ctx, "ip", host)
		ips = slices.Clone(ips)
		slices.SortStableFunc(ips, func(a, b netip.Addr) int {
			return cmp.Compare(a.Unmap().BitLen(), b.Unmap().BitLen())
		})
		for i := range ips {
			ips[i] = ips[i].Unmap()
		}
		return ips, err
	})
}

// network parts a peer's address into what a dialler wants.
func network(addr string) (network, address string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return "unix", path
	}
	return "tcp", addr
}
