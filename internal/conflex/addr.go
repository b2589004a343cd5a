package conflex

import (
	"net/netip"
	"strconv"
	"strings"
)

// maxUnixPath is the room for a path in a unix socket's address, less the NUL.
const maxUnixPath = 107

// An Addr is an address as a server or resolver line has it.
type Addr struct {
	// Text is the address as it was written.
	Text string
	// Host is the name or the address without the port; for a unix socket its
	// path. It ends before a NUL, as C strings do.
	Host string
	// IP is the address that Host is; not valid: Host is a name or a path.
	// Numeric: nginx takes Host for a name, and the C library's resolver
	// knows the address without a look-up ("10.1").
	IP      netip.Addr
	Numeric bool
	// Port is the port, NoPort says that it is the default one. 0: a path.
	Port   int
	NoPort bool
}

// IsUnix reports whether the address is a unix socket's.
func (a Addr) IsUnix() bool { return a.Port == 0 }

// IsName reports whether the address is a name to be looked up.
func (a Addr) IsName() bool { return !a.IsUnix() && !a.IP.IsValid() }

// String is the address as nginx prints it, always with a port.
func (a Addr) String() string {
	switch {
	case a.IsUnix():
		return a.Text
	case a.IP.IsValid():
		return FormatAddr(a.IP, a.Port)
	}
	return a.Host + ":" + strconv.Itoa(a.Port)
}

// ParseAddr reads "host", "host:port", "[v6]", "[v6]:port" or "unix:path". A
// refusal is nginx's short reason, such as "invalid port".
func ParseAddr(text string, defaultPort int) (a Addr, refusal string) {
	switch {
	case len(text) >= 5 && strings.EqualFold(text[:5], "unix:"):
		a = Addr{Text: text, Host: text[5:]}
		switch {
		case a.Host == "":
			return a, "no path in the unix domain socket"
		case len(a.Host) > maxUnixPath:
			return a, "too long path in the unix domain socket"
		}
		return a, ""
	case strings.HasPrefix(text, "["):
		return parseBracketed(text, defaultPort)
	}
	return parseInet(text, defaultPort)
}

func parseInet(text string, defaultPort int) (Addr, string) {
	a := Addr{Text: text, Port: defaultPort, NoPort: true}
	if strings.ContainsAny(text, "/?") {
		return a, "invalid host"
	}
	host, port, found := strings.Cut(text, ":")
	if found && !a.setPort(port) {
		return a, "invalid port"
	}
	if host == "" {
		return a, "no host"
	}
	a.IP, _ = parseV4(host)
	a.Host, _, _ = strings.Cut(host, "\x00")
	if !a.IP.IsValid() {
		a.IP, a.Numeric = parseNumeric(a.Host)
	}
	return a, ""
}

func parseBracketed(text string, defaultPort int) (Addr, string) {
	a := Addr{Text: text, Port: defaultPort, NoPort: true}
	host, port, found := strings.Cut(text[1:], "]")
	switch {
	case !found || strings.ContainsAny(port, "/?"):
		return a, "invalid host"
	case port != "" && port[0] != ':':
		return a, "invalid host"
	case port != "" && !a.setPort(port[1:]):
		return a, "invalid port"
	case host == "":
		return a, "no host"
	}
	var ok bool
	if a.IP, ok = parseV6(host); !ok {
		return a, "invalid IPv6 address"
	}
	a.Host = text[:len(host)+2]
	return a, ""
}

func (a *Addr) setPort(s string) bool {
	n, ok := Number(s)
	if !ok || n < 1 || n > 65535 {
		return false
	}
	a.Port, a.NoPort = int(n), false
	return true
}

// parseV4 reads four decimal octets. nginx lets leading zeros pass, and empty
// octets, which are 0.
func parseV4(s string) (netip.Addr, bool) {
	var ip [4]byte
	octet, n := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' && octet < 3:
			octet, n = octet+1, 0
		case c < '0' || c > '9' || n*10+int(c-'0') > 255:
			return netip.Addr{}, false
		default:
			n = n*10 + int(c-'0')
			ip[octet] = byte(n)
		}
	}
	if octet < 3 {
		return netip.Addr{}, false
	}
	if ip == [4]byte{255, 255, 255, 255} {
		return netip.Addr{}, false // nginx's own sign for "none"; the resolver knows it
	}
	return netip.AddrFrom4(ip), true
}

// parseNumeric reads what the C library's resolver takes for an IPv4 address
// before it looks for a name: one to four numbers, decimal, octal or
// hexadecimal, the last of which fills the rest: "10.1" is 10.0.0.1.
func parseNumeric(s string) (netip.Addr, bool) {
	parts := strings.SplitN(s, ".", 5)
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var v uint64
	for i, part := range parts {
		if part == "" || part[0] < '0' || part[0] > '9' || strings.ContainsAny(part, "_obOB") && !isHex(part) {
			return netip.Addr{}, false
		}
		n, err := strconv.ParseUint(part, 0, 32)
		room := uint64(8)
		if i == len(parts)-1 {
			room = uint64(8 * (4 - i))
		}
		if err != nil || n >= 1<<room {
			return netip.Addr{}, false
		}
		v = v<<room | n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

// isHex keeps Go's other number forms out: 0b1, 0o7, 1_000.
func isHex(s string) bool {
	return len(s) > 2 && (s[1] == 'x' || s[1] == 'X') && !strings.ContainsAny(s, "_oO")
}

// parseV6 reads an IPv6 address without brackets and zone. nginx skips one
// colon in front, so it also takes ":1:2:3:4:5:6:7:8"; and behind a "::" it
// reads a missing last word as 0, so it refuses "1:2:3:4:5:6:7::".
func parseV6(s string) (netip.Addr, bool) {
	if strings.HasPrefix(s, ":") && !strings.HasPrefix(s, "::") {
		s = s[1:]
	}
	if strings.HasSuffix(s, ":") && strings.Contains(s, "::") {
		s += "0"
	}
	ip, err := netip.ParseAddr(s)
	return ip, err == nil && ip.Is6() && ip.Zone() == ""
}

// FormatAddr prints an address with a port as nginx does. It is Go's way but
// for IPv6 addresses that hold an IPv4 one in the last bytes: "::1.2.3.4".
func FormatAddr(ip netip.Addr, port int) string {
	p := strconv.Itoa(port)
	if !ip.Is6() {
		return ip.String() + ":" + p
	}
	b := ip.As16()
	zeros := 0
	for zeros < 16 && b[zeros] == 0 {
		zeros++
	}
	if zeros == 12 || zeros == 13 || zeros == 14 && b[15] != 1 {
		return "[::" + netip.AddrFrom4([4]byte(b[12:])).String() + "]:" + p
	}
	return "[" + ip.WithZone("").String() + "]:" + p
}
