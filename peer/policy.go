package peer

import (
	"fmt"
	"time"
)

// Policy changes what a failure costs a peer, and how it comes back. The zero value is nginx's way; every field works
// for itself. docs/parity.md, "Remedies", shows each with and without.
type Policy struct {
	// Penalty is the share of its weight that a failure takes from a peer's
	// effective weight, above 0 and at most 1; at least 1 is taken. It holds
	// with NoMaxFails too: max_fails then only says when a peer is taken out.
	// 0: nginx's weight / max_fails, which is nothing for a small weight.
	Penalty float64
	// Recovery is the time after its last failure in which a weakened peer's
	// effective weight comes back, evenly, however much traffic there is. At
	// least a millisecond. 0: nginx's way, one for each pick that it takes part in.
	Recovery time.Duration
	// Window lets failures count for this long each: MaxFails of them within it
	// take a peer out, whatever went well in between, and a success clears
	// them only of a peer that was out. At least a millisecond, and MaxFails
	// at most MaxWindowFails then. 0: nginx's way, where a success clears them
	// if the peer was quiet for its fail timeout.
	Window time.Duration
	// KeepLast never takes out the last peer, in both groups, that is neither
	// out nor down: its failures weaken it, and that is all.
	KeepLast bool
	// LeastBad gives a request that finds no live peer the one that has been
	// out for longest, of those that nothing else keeps it from. Otherwise it
	// gets none, at once, as in nginx.
	LeastBad bool
	// BoundTries counts a draining peer among the tries of a request that is
	// bound to it, so that its failure can be passed on. nginx does not count
	// it (quirk Q5), and such a request ends there.
	BoundTries bool
	// Forgive sets all current weights of the group to zero when a peer comes
	// back, so that no peer owes anything and shares are right from then on.
	// nginx keeps the debts, and with them an offset for ever.
	Forgive bool
	// SlowStart lets the effective weight of a peer that came back, or was added
	// to a running upstream, grow evenly over this time, from a hundredth of
	// its weight to the whole. It starts again when the peer is taken out
	// again. At least a millisecond. 0: none.
	SlowStart time.Duration
}

// MaxWindowFails bounds Server.MaxFails under Policy.Window, which remembers the
// time of each: 8 bytes.
const MaxWindowFails = 1000

func (p Policy) check() error {
	refuse := func(field string, value any, reason string) error {
		return &ConfigError{Server: -1, Field: field, Value: value, Reason: reason}
	}
	switch {
	case !(p.Penalty >= 0 && p.Penalty <= 1):
		return refuse("Policy.Penalty", p.Penalty, "must be from 0 to 1")
	case p.Recovery < 0 || p.Recovery > 0 && p.Recovery < time.Millisecond:
		return refuse("Policy.Recovery", p.Recovery, "must be 0 or at least 1 ms")
	case p.Window < 0 || p.Window > 0 && p.Window < time.Millisecond:
		return refuse("Policy.Window", p.Window, "must be 0 or at least 1 ms")
	case p.SlowStart < 0 || p.SlowStart > 0 && p.SlowStart < time.Millisecond:
		return refuse("Policy.SlowStart", p.SlowStart, "must be 0 or at least 1 ms")
	}
	return nil
}

// checkServers refuses servers that the policy cannot keep account of.
func (p Policy) checkServers(servers []Server) error {
	for i, s := range servers {
		if p.Window > 0 && s.MaxFails > MaxWindowFails {
			return &ConfigError{Server: i, Field: "MaxFails", Value: s.MaxFails,
				Reason: fmt.Sprintf("must be at most %d under Policy.Window", MaxWindowFails)}
		}
	}
	return nil
}
