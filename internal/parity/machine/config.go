package machine

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/trunklb/trunk/internal/parity/model"
	"github.com/trunklb/trunk/peer"
)

// Config is one upstream, for the product and for the model.
type Config struct {
	// Servers are the upstream's; the model's are made from them.
	Servers []peer.Server
	// Method is the product's. nil: none given.
	Method peer.Method
	// Model says the same of the model: Method, Time, Inflight, Stream and
	// Sticky. Its Servers and Random are filled in.
	Model model.Config
	// Options are the product's; Clock and Source are filled in. A Resolution
	// other than a second is not for least_time, since the model measures its
	// seconds by it, but not its milliseconds.
	Options peer.Options
	// Limits bound the servers that updates bring.
	Limits Limits
}

// resolution is the unit in which failures are timed.
func (c *Config) resolution() time.Duration { return cmp.Or(c.Options.Resolution, time.Second) }

// modelConfig is the configuration in the model's words.
func (c *Config) modelConfig(random func() uint32) model.Config {
	mc := c.Model
	mc.Random = random
	for _, s := range c.Servers {
		m := model.Server{
			Addr: s.Addr, Name: s.Name, Weight: cmp.Or(s.Weight, 1), MaxConns: s.MaxConns,
			MaxFails: cmp.Or(s.MaxFails, 1), FailTimeout: int64(cmp.Or(s.FailTimeout, 10*time.Second) / c.resolution()),
			Backup: s.Backup, Down: s.Down, Drain: s.Drain, Route: s.Route,
		}
		if s.MaxFails == peer.NoMaxFails {
			m.MaxFails = 0
		}
		if s.FailTimeout == peer.NoFailTimeout {
			m.FailTimeout = 0
		}
		mc.Servers = append(mc.Servers, m)
	}
	return mc
}

// Limits bound the servers that RandomServers makes. The zero value is the
// widest: up to 300 peers with weights up to 2^31-1.
type Limits struct {
	// MaxPeers and MaxWeight are upper bounds; 0: 300, and 2^31-1.
	MaxPeers, MaxWeight int
	// SharedNames lets several servers have one name, as the addresses of one
	// host name have.
	SharedNames bool
	// MostRoutes lets servers have one of so many routes. 0: they have none.
	MostRoutes int
	// Unit is that of the fail timeouts. 0: a second.
	Unit time.Duration
}

// RandomServers makes servers of every kind; mostly few, and sometimes more
// than one and two machine words of tried bits hold.
func RandomServers(choose Choose, l Limits) []peer.Server {
	most := cmp.Or(l.MaxPeers, 300)
	kind := choose("size", 0, 19)
	switch { // the rare kinds are at the end
	case kind < 14:
		most = min(most, 5)
	case kind < 18:
		most = min(most, 20)
	}
	n := choose("peers", 1, most)
	k := randomKind(choose, l)
	servers := make([]peer.Server, n)
	for i := range servers {
		servers[i] = k.server(choose, i)
	}
	servers[0].Backup = false
	return servers
}

// kind is what the servers of one upstream have in common.
type kind struct {
	Limits
	unhappy int // one in so many is down, draining or a backup
}

func randomKind(choose Choose, l Limits) kind {
	weights := oneOf(choose, "weights", 1, 3, 10, 1000, math.MaxInt32)
	l.MaxWeight = min(weights, cmp.Or(l.MaxWeight, math.MaxInt32))
	return kind{l, oneOf(choose, "unhappy", 0, 4, 8, 2)}
}

// server makes a server whose address has a number.
func (k kind) server(choose Choose, n int) peer.Server {
	s := peer.Server{Addr: fmt.Sprintf("10.0.%d.%d:80", n/256, n%256)}
	if k.SharedNames && choose.chance("shared name", 3) {
		s.Name = fmt.Sprintf("host%d", choose("name", 0, 2))
	}
	s.Weight = choose("weight", 0, k.MaxWeight)
	s.MaxFails = oneOf(choose, "max_fails", 0, peer.NoMaxFails, 1, 2, 3)
	s.FailTimeout = oneOf(choose, "fail_timeout", 0, peer.NoFailTimeout, 1, 10, 30)
	if s.FailTimeout > 0 {
		s.FailTimeout *= cmp.Or(k.Unit, time.Second)
	}
	s.MaxConns = oneOf(choose, "max_conns", 0, 0, 0, 1, 2, 5)
	s.Down = choose.chance("down", k.unhappy)
	s.Drain = choose.chance("drain", k.unhappy)
	s.Backup = choose.chance("backup", k.unhappy)
	if k.MostRoutes > 0 && choose("has a route", 0, 2) > 0 {
		s.Route = fmt.Sprintf("r%d", choose("route", 1, k.MostRoutes))
	}
	return s
}

// RandomPolicy makes a policy of any fields, and mostly of few.
func RandomPolicy(choose Choose) peer.Policy {
	var p peer.Policy
	for range choose("fields of the policy", 0, 4) {
		switch choose("field", 0, 7) {
		case 0:
			p.Penalty = oneOf(choose, "penalty", 0.1, 0.5, 1)
		case 1:
			p.Recovery = time.Duration(choose("recovery", 1, 40_000)) * time.Millisecond
		case 2:
			p.Window = time.Duration(choose("window", 1, 40_000)) * time.Millisecond
		case 3:
			p.KeepLast = true
		case 4:
			p.LeastBad = true
		case 5:
			p.BoundTries = true
		case 6:
			p.Forgive = true
		case 7:
			p.SlowStart = time.Duration(choose("slow start", 1, 40_000)) * time.Millisecond
		}
	}
	return p
}
