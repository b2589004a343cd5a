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
	weights := oneOf(choose, "weights", 1, 3, 10, 1000, math.MaxInt32)
	unhappy := oneOf(choose, "unhappy", 0, 4, 8, 2) // one server in so many is down, draining or a backup
	servers := make([]peer.Server, n)
	for i := range servers {
		s := &servers[i]
		s.Addr = fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)
		if l.SharedNames && choose.chance("shared name", 3) {
			s.Name = fmt.Sprintf("host%d", choose("name", 0, 2))
		}
		s.Weight = choose("weight", 0, min(weights, cmp.Or(l.MaxWeight, math.MaxInt32)))
		s.MaxFails = oneOf(choose, "max_fails", 0, peer.NoMaxFails, 1, 2, 3)
		s.FailTimeout = oneOf(choose, "fail_timeout", 0, peer.NoFailTimeout, 1, 10, 30)
		if s.FailTimeout > 0 {
			s.FailTimeout *= cmp.Or(l.Unit, time.Second)
		}
		s.MaxConns = oneOf(choose, "max_conns", 0, 0, 0, 1, 2, 5)
		s.Down = choose.chance("down", unhappy)
		s.Drain = choose.chance("drain", unhappy)
		s.Backup = i > 0 && choose.chance("backup", unhappy)
	}
	return servers
}
