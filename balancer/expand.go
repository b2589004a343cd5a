package balancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/trunklb/trunk/internal/conflex"
)

// Expand replaces the servers whose address is a host name by one for each of
// its addresses, in the order in which lookup gives them, as nginx does at
// start: each has all the parameters, and the Name of the line. Addresses come
// out as nginx prints them, with a port: "127.0.0.1:80", "[::1]:80",
// "unix:/path"; the MD5 of this text is the peer's sid. Servers with Resolve
// stay as they are.
//
// lookup is asked once per server with a name. The error is a *[ConfigError]
// for an address that cannot be read, or a *[ResolveError].
func Expand(servers []Server, lookup func(host string) ([]netip.Addr, error)) ([]Server, error) {
	out := make([]Server, 0, len(servers))
	for i, s := range servers {
		a, refusal := conflex.ParseAddr(s.Addr, 80)
		if refusal != "" {
			return nil, refusedAddr(i, s.Addr, refusal)
		}
		if s.Name == "" {
			s.Name = s.Addr
		}
		if !a.IsName() || s.Resolve {
			s.Addr = a.String()
			out = append(out, s)
			continue
		}
		ips, err := lookup(a.Host)
		if err == nil && len(ips) == 0 {
			err = fmt.Errorf("no addresses")
		}
		if err != nil {
			return nil, &ResolveError{Server: i, Host: a.Host, Err: err}
		}
		for _, ip := range ips {
			s.Addr = conflex.FormatAddr(ip, a.Port)
			out = append(out, s)
		}
	}
	return out, nil
}

// refusedAddr is the error for an address that cannot be read.
func refusedAddr(server int, addr, refusal string) *ConfigError {
	switch ip, err := netip.ParseAddr(strings.Trim(addr, "[]")); {
	case strings.Contains(addr, "://"):
		refusal += "; write host:port, without a scheme"
	case err == nil && ip.Is6() && ip.Zone() == "":
		refusal += "; an IPv6 address is written in brackets: [" + ip.String() + "]"
	case err == nil && ip.Is6():
		refusal += "; a zone is no part of an address here"
	}
	return &ConfigError{Server: server, Field: "Addr", Value: addr, Reason: refusal}
}

// Canonical returns the servers sorted by address: the order in which plain hash and
// ip_hash, which count places in the list, give a client the same peer on every host,
// wherever the hosts have the list from. Servers with one address keep their order.
func Canonical(servers []Server) []Server {
	sorted := slices.Clone(servers)
	slices.SortStableFunc(sorted, func(a, b Server) int { return strings.Compare(printed(a.Addr), printed(b.Addr)) })
	return sorted
}
