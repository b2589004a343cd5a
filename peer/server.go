package peer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// nginx's own zeros. A field that is left at Go's zero value takes nginx's
// default instead, so these are spelled -1.
const (
	// NoMaxFails is nginx's max_fails=0: failures are counted, but never
	// weaken the peer and never take it out.
	NoMaxFails = -1
	// NoFailTimeout is nginx's fail_timeout=0: a peer that failed out is
	// asked again as soon as the clock shows another tick.
	NoFailTimeout time.Duration = -1
)

// The defaults of nginx's server directive.
const (
	DefaultWeight      = 1
	DefaultMaxFails    = 1
	DefaultFailTimeout = 10 * time.Second
)

// MaxRoute is the maximal length of Server.Route in bytes.
const MaxRoute = 32

// Server is one server line of an upstream block. It is configuration: a plain,
// comparable value that the library copies and never changes.
//
// Zero values are nginx's defaults. Note that Weight 0 means weight 1, and
// never "no traffic": that is Down or Drain.
type Server struct {
	// Addr is where the peer is reached: "host:port" or "unix:/path". Package
	// balancer adds port 80 where there is none.
	// Two servers may have the same address, as in nginx: they are two peers.
	Addr string `json:"addr"`
	// Name is nginx's server name, the text of the server directive. The
	// consistent-hash ring is made from it. Empty: Addr. A host name that
	// resolves to several addresses is several servers with one Name.
	Name string `json:"name,omitempty"`
	// Weight is the share of the traffic, from 1. 0: 1.
	Weight int `json:"weight,omitempty"`
	// MaxConns limits the requests that the peer holds at one time. 0: no limit.
	MaxConns int `json:"max_conns,omitempty"`
	// MaxFails is the number of failures that takes the peer out for
	// FailTimeout. 0: 1. NoMaxFails: never.
	MaxFails int `json:"max_fails,omitempty"`
	// FailTimeout is how long a peer stays out, and how long failures are
	// remembered; a multiple of the clock's resolution (one second unless
	// the resolution option says otherwise). 0: 10 s. NoFailTimeout: 0 s. The
	// largest Duration is for ever, and needs to be no multiple.
	FailTimeout time.Duration `json:"fail_timeout,omitempty"`
	// Backup puts the peer in the backup group, which is asked when no
	// primary peer can be.
	Backup bool `json:"backup,omitempty"`
	// Down takes the peer out of the choice; it still counts in the group's
	// number and total weight, as in nginx.
	Down bool `json:"down,omitempty"`
	// Drain is Down for all requests but those bound to the peer by sticky.
	Drain bool `json:"drain,omitempty"`
	// Route is the peer's session id (sid) for sticky: 1 to MaxRoute bytes.
	// Empty: the MD5 of Addr in lower-case hex.
	Route string `json:"route,omitempty"`
	// Resolve keeps one peer per address of the host name in Addr, looked up
	// again and again. Service looks up SRV records instead. Both are the
	// balancer's work: below it Addr is taken as it is.
	Resolve bool   `json:"resolve,omitempty"`
	Service string `json:"service,omitempty"`

	// TLSName is the name that the peer's certificate is verified for, and that
	// is sent as SNI. Empty: that of the request's URL. Not yet used.
	TLSName string `json:"tls_name,omitempty"`
	// Host is the Host header of requests to the peer. Empty: that of the request.
	// Not yet used.
	Host string `json:"host,omitempty"`
	// Zone is the availability zone that the peer is in. Not yet used.
	Zone string `json:"zone,omitempty"`
	// SlowStart is Policy.SlowStart for this peer alone: at least a
	// millisecond. 0: the policy's. Not yet used.
	SlowStart time.Duration `json:"slow_start,omitempty"`
	// Labels are the user's own. The choice of a peer does not depend on them, so
	// that a change of labels alone builds nothing again: methods must not
	// build on them.
	Labels Labels `json:"labels,omitzero"`
}

// A ConfigError says which field of which server was refused, and why.
type ConfigError struct {
	// Server is the index in the list that was given; -1: the list itself.
	Server int
	// Field is the name of the Go field, Value what it held.
	Field string
	Value any
	// Reason says what would be right.
	Reason string
}

func (e *ConfigError) Error() string {
	if e.Server < 0 {
		return fmt.Sprintf("trunk: %s: %s (got %v)", e.Field, e.Reason, e.Value)
	}
	return fmt.Sprintf("trunk: servers[%d].%s: %s (got %v)", e.Server, e.Field, e.Reason, e.Value)
}

// normalized returns the server with nginx's defaults filled in, and nginx's
// own zeros as zeros: the form that the arithmetic uses.
func (s Server) normalized(i int, resolution time.Duration) (Server, error) {
	refuse := func(field string, value any, reason string) (Server, error) {
		return Server{}, &ConfigError{Server: i, Field: field, Value: value, Reason: reason}
	}
	if s.Addr == "" {
		return refuse("Addr", `""`, "an address is needed")
	}
	if s.Name == "" {
		s.Name = s.Addr
	}
	switch {
	case s.Weight < 0:
		return refuse("Weight", s.Weight, "must be at least 1; 0 means 1")
	case s.Weight == 0:
		s.Weight = DefaultWeight
	}
	if s.MaxConns < 0 {
		return refuse("MaxConns", s.MaxConns, "must be at least 0; 0 means no limit")
	}
	switch {
	case s.MaxFails < NoMaxFails:
		return refuse("MaxFails", s.MaxFails, "must be at least 0, or NoMaxFails")
	case s.MaxFails == 0:
		s.MaxFails = DefaultMaxFails
	case s.MaxFails == NoMaxFails:
		s.MaxFails = 0
	}
	switch {
	case s.FailTimeout < NoFailTimeout:
		return refuse("FailTimeout", s.FailTimeout, "must be at least 0, or NoFailTimeout")
	case s.FailTimeout == 0:
		s.FailTimeout = DefaultFailTimeout
	case s.FailTimeout == NoFailTimeout:
		s.FailTimeout = 0
	case s.FailTimeout%resolution != 0 && s.FailTimeout != math.MaxInt64:
		return refuse("FailTimeout", s.FailTimeout,
			fmt.Sprintf("must be a multiple of the clock's resolution, %v", resolution))
	}
	if len(s.Route) > MaxRoute {
		return refuse("Route", fmt.Sprintf("%q", s.Route), fmt.Sprintf("must be at most %d bytes", MaxRoute))
	}
	if err := s.checkPlaces(i); err != nil {
		return Server{}, err
	}
	return s, nil
}

// checkPlaces refuses malformed values of the fields that are not nginx's.
func (s *Server) checkPlaces(i int) error {
	for _, f := range []struct{ field, value, not string }{
		{"TLSName", s.TLSName, " /"}, {"Host", s.Host, " /"}, {"Zone", s.Zone, ""},
	} {
		bad := func(c rune) bool {
			return c < ' ' || c == 0x7f || c == utf8.RuneError || strings.ContainsRune(f.not, c)
		}
		if strings.ContainsFunc(f.value, bad) {
			return &ConfigError{Server: i, Field: f.field, Value: strconv.Quote(f.value), Reason: "has a character that no such name has"}
		}
	}
	if s.SlowStart < 0 || s.SlowStart > 0 && s.SlowStart < time.Millisecond {
		return &ConfigError{Server: i, Field: "SlowStart", Value: s.SlowStart, Reason: "must be 0 or at least 1 ms"}
	}
	if refusal := s.Labels.refusal(); refusal != "" {
		return &ConfigError{Server: i, Field: "Labels", Value: fmt.Sprintf("%q", s.Labels.String()), Reason: refusal}
	}
	return nil
}
