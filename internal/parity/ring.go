package parity

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
)

// RingRecord is the consistent-hash ring of one set of servers.
type RingRecord struct {
	Name    string       `json:"name"`
	Servers []RingServer `json:"servers"`
	Hosts   *string      `json:"hosts"`  // "name=addr,addr;..."
	Number  int          `json:"number"` // of points
	SHA256  string       `json:"sha256"` // of the lines "HASH SERVER\n"
	Points  []Point      `json:"points"` // all of them, if they are few
	First   []Point      `json:"first"`
	Last    []Point      `json:"last"`
}

// RingServer is one server line of a ring, before name resolution.
type RingServer struct {
	Server string `json:"server"` // text of the directive
	Weight int    `json:"weight"`
}

// Point is one point of a ring.
type Point struct {
	Hash   uint32
	Server string // text of the directive
}

// UnmarshalJSON reads [hash, server].
func (p *Point) UnmarshalJSON(data []byte) error {
	return unmarshalTuple(data, &p.Hash, &p.Server)
}

// LoadRings reads a rings.json.gz.
func LoadRings(path string) ([]RingRecord, error) { return loadOne[[]RingRecord](path) }

// RingFunc makes the points of the ring of some peers, in ring order. Of a Server
// it needs no more than Name, Server and Weight.
type RingFunc func(servers []Server) ([]Point, error)

// CheckRing compares a recorded ring with the one that the function makes.
func CheckRing(record *RingRecord, ring RingFunc) error {
	peers, err := record.resolve()
	if err != nil {
		return fmt.Errorf("%s: %w", record.Name, err)
	}
	got, err := ring(peers)
	if err != nil {
		return fmt.Errorf("%s: %w", record.Name, err)
	}
	if err := record.compare(got); err != nil {
		return fmt.Errorf("%s: %w", record.Name, err)
	}
	return nil
}

func (record *RingRecord) compare(got []Point) error {
	if record.Points != nil {
		if err := equalLists("points", record.Points, got); err != nil {
			return err
		}
	}
	if err := equal("number of points", record.Number, len(got)); err != nil {
		return err
	}
	sum := sha256.New()
	for _, p := range got {
		fmt.Fprintf(sum, "%d %s\n", p.Hash, p.Server)
	}
	first, last := len(record.First), len(got)-len(record.Last)
	return errors.Join(
		equalLists("first points", record.First, got[:first]),
		equalLists("last points", record.Last, got[last:]),
		equal("sha256", record.SHA256, hex.EncodeToString(sum.Sum(nil))),
	)
}

// resolve makes the peers of a ring's server lines: one for each address of the
// host, all with the text of the line. Port 80 is nginx's default.
func (record *RingRecord) resolve() ([]Server, error) {
	hosts, err := record.hosts()
	if err != nil {
		return nil, err
	}
	var peers []Server
	for _, s := range record.Servers {
		host, port := s.Server, "80"
		if h, p, err := net.SplitHostPort(s.Server); err == nil {
			host, port = h, p
		}
		addrs, ok := hosts[host]
		if !ok {
			addrs = []string{strings.Trim(host, "[]")}
		}
		for _, addr := range addrs {
			peers = append(peers, Server{
				Name: net.JoinHostPort(addr, port), Server: s.Server,
				Weight: s.Weight, MaxFails: 1, FailTimeout: 10,
			})
		}
	}
	return peers, nil
}

// hosts reads the addresses of the host names.
func (record *RingRecord) hosts() (map[string][]string, error) {
	hosts := map[string][]string{}
	if record.Hosts == nil {
		return hosts, nil
	}
	for host := range strings.SplitSeq(*record.Hosts, ";") {
		name, addrs, ok := strings.Cut(host, "=")
		if !ok {
			return nil, fmt.Errorf("hosts: no addresses in %q", host)
		}
		hosts[name] = strings.Split(addrs, ",")
	}
	return hosts, nil
}
