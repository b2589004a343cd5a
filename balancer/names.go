package balancer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/trunklb/trunk/internal/conflex"
)

// question is what a server line asks the resolver for.
type question struct {
	host    string
	service string // "": addresses
	again   bool   // it is asked again and again
	line    int    // of the line that asks first; 0 in keys
}

func (q question) key() question { q.line = 0; return q }

// found is one address behind a name.
type found struct {
	ip netip.Addr
	// Of a service only: the record's host, port, priority and weight.
	target           string
	port             uint16
	priority, weight uint16
}

// String is the address, with the port if the record has one.
func (f found) String() string {
	if f.port == 0 {
		return f.ip.String()
	}
	return withPort(f.ip, int(f.port))
}

// withPort writes an address as nginx does, but with its zone, which nginx drops: without
// it a link-local address leads nowhere.
func withPort(ip netip.Addr, port int) string {
	if ip.Zone() != "" {
		return netip.AddrPortFrom(ip, uint16(port)).String()
	}
	return conflex.FormatAddr(ip, port)
}

// answers are the last good answers, by question without a line. The lists are
// immutable.
type answers map[question][]found

// names are the names in an upstream's server lines. It is guarded by
// Upstream.changing, but for the resolver, which never changes.
type names struct {
	resolver Resolver
	network  string // of the names that are asked again
	timeout  time.Duration
	known    answers
}

// keep makes a the answers that are known. Those of names that are in no line
// any more are forgotten.
func (n *names) keep(a answers) { n.known = a }

// asked are the queries that are to be asked again.
func (a answers) asked() []question {
	var list []question
	for q := range a {
		if q.again {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(a, b question) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.service, b.service))
	})
	return list
}

// expansion is server lines with the addresses in the place of the names.
type expansion struct {
	servers []Server
	line    []int // by server
	answers answers
	missing []question
}

// expand puts addresses in the place of names. The error is a *ConfigError.
func (n *names) expand(lines []Server, fresh answers) (*expansion, error) {
	x := &expansion{answers: answers{}, servers: make([]Server, 0, len(lines)), line: make([]int, 0, len(lines))}
	for i, s := range lines {
		if n.resolver == NoLookup {
			x.add(i, s)
		} else if err := x.serverLine(i, s, n, fresh); err != nil {
			return x, err
		}
	}
	return x, nil
}

// add adds what a line has become.
func (x *expansion) add(line int, servers ...Server) {
	for range servers {
		x.line = append(x.line, line)
	}
	x.servers = append(x.servers, servers...)
}

// serverLine expands one line.
func (x *expansion) serverLine(i int, s Server, n *names, fresh answers) error {
	a, refusal := conflex.ParseAddr(s.Addr, 80)
	if refusal != "" {
		return refusedAddr(i, s.Addr, refusal)
	}
	if s.Service != "" {
		if err := checkService(i, &s, a, n.resolver); err != nil {
			return err
		}
	}
	q := question{host: a.Host, service: s.Service, again: s.Resolve, line: i}
	s.Resolve, s.Service = false, ""
	if s.Name == "" {
		s.Name = s.Addr
	}
	if !a.IsName() {
		s.Addr = a.String()
		x.add(i, s)
		return nil
	}
	list, known := n.known[q.key()]
	if !known {
		list, known = fresh[q.key()]
	}
	if !known {
		x.missing = append(x.missing, q)
		return nil
	}
	x.answers[q.key()] = list
	if q.service != "" {
		x.add(i, services(s, list)...)
		return nil
	}
	for _, f := range list {
		s.Addr = withPort(f.ip, a.Port)
		x.add(i, s)
	}
	return nil
}

// first expands the lines that New got.
func (n *names) first(ctx context.Context, lines []Server) (*expansion, error) {
	fresh := answers{}
	for {
		x, err := n.expand(lines, fresh)
		if err != nil || len(x.missing) == 0 {
			return x, err
		}
		if err := n.lookUp(ctx, x.missing, fresh); err != nil {
			return nil, err
		}
	}
}

// checkService refuses what nginx refuses.
func checkService(i int, s *Server, a conflex.Addr, r Resolver) error {
	refuse := func(reason string) error {
		return &ConfigError{Server: i, Field: "Service", Value: s.Service, Reason: reason}
	}
	_, knows := r.(ServiceResolver)
	switch {
	case !s.Resolve:
		return refuse("needs Resolve")
	case !a.IsName():
		return refuse("needs a host name as Addr")
	case !knows:
		return refuse("needs a Config.Resolver that is a ServiceResolver")
	}
	return nil
}

// services are the peers of SRV records (docs/parity.md, section 11): those of the best
// priority are primary, the others backups; on a line with backup the best
// are backups, and the others are nothing. The list is in order of priority.
func services(s Server, list []found) []Server {
	var out []Server
	for _, f := range list {
		p := s
		if f.priority != list[0].priority {
			if s.Backup {
				break
			}
			p.Backup = true
		}
		p.Addr = withPort(f.ip, int(f.port))
		p.Name = f.target
		if s.Weight == 0 || s.Weight == 1 {
			p.Weight = int(max(f.weight, 1))
		}
		out = append(out, p)
	}
	return out
}

// lookUp asks for names that are not known yet. The error is a *ResolveError.
func (n *names) lookUp(ctx context.Context, missing []question, fresh answers) error {
	for _, q := range missing {
		if _, known := fresh[q.key()]; known {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, n.timeout)
		list, err := n.ask(limited, q, nil)
		cancel()
		if len(list) == 0 {
			return &ResolveError{Server: q.line, Host: q.asks(), Err: err}
		}
		fresh[q.key()] = list
	}
	return nil
}

// asks is what the resolver is asked for.
func (q question) asks() string {
	switch {
	case q.service == "":
		return q.host
	case strings.Contains(q.service, "."):
		return q.service + "." + q.host
	}
	return "_" + q.service + "._tcp." + q.host
}

// ask asks the resolver. Of what is asked again the order does not matter, and it
// is put into one, so that a shuffled answer is no change, and all processes
// have the same list; what is asked once keeps the resolver's order, as in nginx.
//
// There may be both an answer and an error: one family of addresses, or some hosts of a
// service, could not be looked up. They keep the addresses that they had in old.
func (n *names) ask(ctx context.Context, q question, old []found) ([]found, error) {
	if q.service != "" {
		return n.askService(ctx, q, old)
	}
	var ips []netip.Addr
	var err error
	if q.again {
		ips, err = n.addresses(ctx, q.host, addressesOf("", old))
	} else {
		ips, err = lookupIP(ctx, n.resolver, "ip", q.host)
	}
	list := make([]found, len(ips))
	for i, ip := range ips {
		list[i].ip = ip
	}
	return list, err
}

// addresses asks for the addresses of a host, sorted. Each family is asked for by
// itself, both at the same time: a resolver that is asked for both takes the answer of
// one for the whole when the other fails, and half of the peers would vanish. A
// family whose look-up fails keeps the addresses that it had in old; one that
// does not exist has none. There is always an error where the list is empty.
func (n *names) addresses(ctx context.Context, host string, old []netip.Addr) ([]netip.Addr, error) {
	type answer struct {
		ips []netip.Addr
		err error
	}
	ask := func(network string) <-chan answer {
		c := make(chan answer, 1)
		go func() {
			var a answer
			a.err = caught("the Resolver", func() (err error) {
				a.ips, err = lookupIP(ctx, n.resolver, network, host)
				return err
			})
			c <- a
		}()
		return c
	}
	networks := []string{n.network}
	if n.network == "ip" {
		networks = []string{"ip4", "ip6"}
	}
	var answers []<-chan answer
	for _, network := range networks {
		answers = append(answers, ask(network))
	}
	var list []netip.Addr
	var failed, missing []error
	for k, network := range networks {
		a := <-answers[k]
		switch {
		case a.err == nil:
			list = append(list, a.ips...)
		case isNotFound(a.err):
			missing = append(missing, a.err)
		default:
			failed = append(failed, a.err)
			for _, ip := range old {
				if isOf(network, ip) {
					list = append(list, ip)
				}
			}
		}
	}
	if len(list) == 0 {
		failed = append(failed, missing...)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list, errors.Join(failed...)
}

func (n *names) askService(ctx context.Context, q question, old []found) ([]found, error) {
	records, err := lookupSRV(ctx, n.resolver.(ServiceResolver), q.service, q.host)
	if err != nil {
		return nil, err
	}
	var list []found
	var errs []error
	hosts := map[string][]netip.Addr{}
	for _, r := range records {
		target := strings.TrimSuffix(r.Target, ".")
		ips, known := hosts[target]
		if !known {
			had := addressesOf(target, old)
			if ips, err = n.addresses(ctx, target, had); err != nil {
				errs = append(errs, err)
			}
			if len(ips) == 0 {
				ips = had
			}
			hosts[target] = ips
		}
		for _, ip := range ips {
			list = append(list, found{ip, target, r.Port, r.Priority, r.Weight})
		}
	}
	return inOrder(list), errors.Join(errs...)
}

// addressesOf returns the addresses that a host of a service had; "" is the host of a
// name without one.
func addressesOf(target string, old []found) []netip.Addr {
	set := map[netip.Addr]bool{}
	for _, f := range old {
		if f.target == target {
			set[f.ip] = true
		}
	}
	return slices.Collect(maps.Keys(set))
}

// inOrder sorts by priority, address and port. Of what has the same address and port
// only the first is kept, which has the best priority, and of these the
// largest weight.
func inOrder(list []found) []found {
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), a.ip.Compare(b.ip), cmp.Compare(a.port, b.port),
			cmp.Compare(b.weight, a.weight), cmp.Compare(a.target, b.target))
	})
	type address struct {
		ip   netip.Addr
		port uint16
	}
	seen := map[address]bool{}
	return slices.DeleteFunc(list, func(f found) bool {
		a := address{f.ip, f.port}
		again := seen[a]
		seen[a] = true
		return again
	})
}
