package balancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Resolver looks up host names. *net.Resolver is one. A look-up must end when its
// context does. A panic of one that looks again is a look-up that has failed.
type Resolver interface {
	// LookupNetIP returns the addresses of a host; network is "ip", or "ip4" or "ip6"
	// for names with Resolve, of which each family is asked for by itself. That there
	// are none must be a *net.DNSError with IsNotFound, or an empty list: after any
	// other error the addresses stay that were known.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// ServiceResolver is a Resolver that also knows SRV records, for servers with
// Service. *net.Resolver is one.
type ServiceResolver interface {
	Resolver
	// LookupSRV returns the SRV records of _service._proto.name or, where
	// service and proto are empty, of name.
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// NoLookup as Config.Resolver looks nothing up: every name is one peer, whose
// address is the name unchanged, for a transport with a dialler of its own,
// and for tests.
var NoLookup Resolver = verbatim{}

type verbatim struct{}

func (verbatim) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("trunk: the NoLookup resolver looks nothing up")
}

// A ResolveError says which server's name could not be looked up. Unwrap
// returns the resolver's error.
type ResolveError struct {
	// Server is the index in the list of servers, Host the name, or the name
	// that was asked for SRV records.
	Server int
	Host   string
	Err    error
}

func (e *ResolveError) Error() string {
	return fmt.Sprintf("trunk: servers[%d].Addr: host not found: %q: %v", e.Server, e.Host, e.Err)
}

// Unwrap returns Err.
func (e *ResolveError) Unwrap() error { return e.Err }

// MarshalJSON spells the error as its text.
func (e *ResolveError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Server int    `json:"server"`
		Host   string `json:"host"`
		Err    string `json:"error"`
	}{e.Server, e.Host, errorText(e.Err)})
}

var errNoAddresses = errors.New("no addresses")

// lookupIP asks for a host's addresses, in the resolver's order and each but once.
// net.Resolver has IPv4 addresses mapped into IPv6 at times, so that all of these
// count as IPv4. Addresses of another network than was asked for are left out: a
// resolver may ignore that.
func lookupIP(ctx context.Context, r Resolver, network, host string) ([]netip.Addr, error) {
	ips, err := r.LookupNetIP(ctx, network, host)
	if err != nil {
		return nil, err
	}
	seen := make(map[netip.Addr]bool, len(ips))
	out := make([]netip.Addr, 0, len(ips))
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.IsValid() && !seen[ip] && isOf(network, ip) {
			seen[ip] = true
			out = append(out, ip)
		}
	}
	if len(out) == 0 {
		return nil, errNoAddresses
	}
	return out, nil
}

// isNotFound reports whether an error says that there are no such addresses. Any other
// error says nothing of what there is.
func isNotFound(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound || errors.Is(err, errNoAddresses)
}

// isOf reports whether an address is of a network: "ip", "ip4" or "ip6".
func isOf(network string, ip netip.Addr) bool {
	return network == "ip" || ip.Is4() == (network == "ip4")
}

// lookupSRV asks for the SRV records of a service of a host as nginx does: a
// service without a dot is one over TCP, any other is put in front unchanged.
// A resolver that has found some records to be broken has the others.
func lookupSRV(ctx context.Context, r ServiceResolver, service, host string) ([]*net.SRV, error) {
	proto, name := "tcp", host
	if strings.Contains(service, ".") {
		service, proto, name = "", "", service+"."+host
	}
	_, records, err := r.LookupSRV(ctx, service, proto, name)
	var out []*net.SRV
	for _, srv := range records {
		// A dot says that there is no such service here.
		if srv != nil && srv.Port > 0 && strings.Trim(srv.Target, ".") != "" {
			out = append(out, srv)
		}
	}
	if len(out) == 0 {
		if err == nil {
			err = errNoAddresses
		}
		return nil, err
	}
	return out, nil
}

// network parts a peer's address into what a dialler wants.
func network(addr string) (network, address string) {
	if len(addr) >= 5 && strings.EqualFold(addr[:5], "unix:") {
		return "unix", addr[5:]
	}
	return "tcp", addr
}
