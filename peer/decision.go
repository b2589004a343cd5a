package peer

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"
)

// Decision is the record of one get: which peers were considered, which skipped and
// why, and which rule chose. It is a value of its own; nothing in it is shared
// with the upstream.
type Decision struct {
	// Time is the clock's, in UTC.
	Time time.Time `json:"time"`
	// Method is the method in nginx's words.
	Method string `json:"method"`
	// Key, Client and Hint are what the request brought.
	Key    string `json:"key,omitempty"`
	Client string `json:"client,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Try counts the gets of the request, from 1; TriesLeft are what remained
	// before this one was freed.
	Try       int `json:"try"`
	TriesLeft int `json:"tries_left"`
	// Winner is the index in Peers of the peer that was got; -1: none, which
	// is nginx's "no live upstreams".
	Winner int  `json:"winner"`
	Rule   Rule `json:"rule"`
	// RoundRobin says that the method left the choice to round robin; Misses
	// is how often hash, ip_hash or random has missed in this request. More
	// than 20 are one reason to leave it.
	RoundRobin bool   `json:"round_robin,omitempty"`
	Misses     uint32 `json:"misses,omitempty"`
	// Total is what all who took part in the trunk gained and the winner paid; 0 if
	// it did not run.
	Total int64 `json:"total,omitempty"`
	// Peers are those of the groups that were asked, in list order.
	Peers []Candidate `json:"peers"`
}

// LogValue makes a decision a group of slog attributes.
func (d *Decision) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("method", d.Method), slog.Int("try", d.Try), slog.String("rule", d.Rule)}
	if 0 <= d.Winner && d.Winner < len(d.Peers) {
		attrs = append(attrs, slog.String("peer", d.Peers[d.Winner].Addr))
	}
	return slog.GroupValue(append(attrs, slog.String("decision", d.String()))...)
}

// Candidate is a peer in a Decision.
type Candidate struct {
	Addr    string  `json:"addr"`
	Name    string  `json:"name,omitempty"` // the server's name, where it is another text
	Group   int     `json:"group"`          // Primary or Backup
	Index   int     `json:"index"`          // in its group
	Verdict Verdict `json:"verdict"`
	Weight  int64   `json:"weight"`
	// Conns and Fails are as they were before the get, with their limits.
	Conns    int64 `json:"conns"`
	MaxConns int64 `json:"max_conns,omitempty"`
	Fails    int64 `json:"fails,omitempty"`
	MaxFails int64 `json:"max_fails,omitempty"`
	// Probe is the time until a peer that failed out is asked again.
	Probe time.Duration `json:"probe,omitempty"`
	// The trunk's account before and after.
	CurrentBefore   int64 `json:"cw_before"`
	CurrentAfter    int64 `json:"cw_after"`
	EffectiveBefore int64 `json:"ew_before"`
	EffectiveAfter  int64 `json:"ew_after"`
	// Detail is what the method has to say of the peer, as "eta 40 ms".
	Detail string `json:"detail,omitempty"`
}

// before notes the state of every group that may be asked.
func (d *Decision) before(u *Upstream, r *Request, now Now) {
	*d = Decision{Time: wallTime(now.Time), Method: u.name, Key: r.Key, Hint: r.Hint, Try: r.gets,
		TriesLeft: r.tries, Winner: None, Peers: d.Peers[:0]}
	if r.Client.IsValid() {
		d.Client = r.Client.String()
	}
	first := int(r.group)
	if u.policy.LeastBad {
		first = Primary // a peer of either group may be the one that is asked when all are out
	}
	for gi := first; gi <= Backup; gi++ {
		g := &u.groups[gi]
		g.paid = 0
		for i := range g.peers {
			p, c := &g.peers[i], &g.cold[i]
			w := p.load.Load()
			k := Candidate{Addr: c.member.Addr, Group: gi, Index: i, Verdict: g.verdict(i, r, now),
				Weight: g.Weight(i), Conns: int64(p.conns(w)), Fails: int64(failsOf(w)),
				MaxConns: int64(c.maxConns), MaxFails: int64(c.maxFails),
				CurrentBefore: g.configured(g.currentWeight(i)), EffectiveBefore: g.configured(p.ew)}
			if c.member.Name != k.Addr {
				k.Name = c.member.Name
			}
			if k.Verdict == FailedOut {
				k.Probe = g.probe(i) - now.Time
			}
			d.Peers = append(d.Peers, k)
		}
	}
}

// probe is when a peer that is out is asked again, since the Unix epoch.
func (g *Group) probe(i int) time.Duration {
	ticks := g.peers[i].checked + g.peers[i].failTimeout + 1
	if ticks > int64(math.MaxInt64/g.up.resolution) {
		return math.MaxInt64 // never
	}
	return time.Duration(ticks) * g.up.resolution
}

// after notes what the pick has made of it.
func (d *Decision) after(u *Upstream, r *Request, g *Group, winner int, now Now) {
	d.Rule, d.RoundRobin, d.Misses = r.Rule, r.fellBack, r.Scratch.Misses
	if int(r.group) == Primary {
		d.Peers = d.Peers[:len(u.groups[Primary].peers)] // the backups were not asked
	}
	for n := range d.Peers {
		k := &d.Peers[n]
		of := &u.groups[k.Group]
		k.CurrentAfter, k.EffectiveAfter = of.configured(of.currentWeight(k.Index)), of.configured(of.peers[k.Index].ew)
		if explain := u.selector.Explain; explain != nil {
			k.Detail = explain(of, r, k.Index, now)
		}
		if of == g && k.Index == winner {
			d.Winner = n
			d.Total = g.configured(g.paid)
		}
	}
	if d.Winner >= 0 && d.Rule == Undecided && r.payer == winner {
		d.Rule = Bound
	}
}

// String is the decision in a few lines to paste into a ticket.
func (d *Decision) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, try %d", d.Method, d.Try)
	if d.TriesLeft > 0 {
		fmt.Fprintf(&b, " (%d left)", d.TriesLeft)
	}
	for _, s := range [][2]string{{"key", d.Key}, {"client", d.Client}, {"hint", d.Hint}} {
		if s[1] != "" {
			fmt.Fprintf(&b, ", %s %q", s[0], s[1])
		}
	}
	if d.Winner < 0 {
		b.WriteString(": no live upstreams")
	} else {
		fmt.Fprintf(&b, ": %s, %s", d.Peers[d.Winner].Addr, d.rule())
	}
	for n := range d.Peers {
		b.WriteString("\n  ")
		d.Peers[n].write(&b, n == d.Winner, d.Total)
	}
	return b.String()
}

// rule is the rule in words, with how it came to be asked.
func (d *Decision) rule() string {
	w := &d.Peers[d.Winner]
	text := d.Rule
	if d.Rule == GreatestWeight && d.tied() {
		text = "first of equal current weights"
	}
	if d.RoundRobin && d.Misses > 20 {
		text = fmt.Sprintf("%d misses, so round robin: %s", d.Misses, text)
	} else if d.RoundRobin {
		text = "left to round robin: " + text
	}
	if w.Group == Backup {
		text += ", a backup"
	}
	return text
}

// tied reports whether a peer after the winner had the same current weight.
func (d *Decision) tied() bool {
	w := &d.Peers[d.Winner]
	for n := d.Winner + 1; n < len(d.Peers); n++ {
		if k := &d.Peers[n]; k.Group == w.Group && k.Verdict == Considered && k.CurrentAfter == w.CurrentAfter+d.Total {
			return true
		}
	}
	return false
}

func (c *Candidate) write(b *strings.Builder, won bool, total int64) {
	fmt.Fprintf(b, "%s weight=%d: ", c.Addr, c.Weight)
	if c.Group == Backup {
		b.WriteString("backup, ")
	}
	switch c.Verdict {
	case FailedOut:
		fmt.Fprintf(b, "failed %d of %d, probe in %s", c.Fails, c.MaxFails, c.Probe.Round(time.Second))
	case Full:
		fmt.Fprintf(b, "full, %d of %d", c.Conns, c.MaxConns)
	case Considered:
		fmt.Fprintf(b, "conns %d, cw %d", c.Conns, c.CurrentBefore)
		switch {
		case won && total > 0:
			fmt.Fprintf(b, "%+d-%d=%d", c.CurrentAfter+total-c.CurrentBefore, total, c.CurrentAfter)
		case c.CurrentAfter != c.CurrentBefore:
			fmt.Fprintf(b, "%+d=%d", c.EffectiveBefore, c.CurrentAfter)
		}
		if c.EffectiveBefore != c.Weight {
			fmt.Fprintf(b, ", ew %d", c.EffectiveBefore)
			if c.EffectiveAfter != c.EffectiveBefore {
				fmt.Fprintf(b, " -> %d", c.EffectiveAfter)
			}
		}
		if c.Fails > 0 && c.MaxFails > 0 {
			fmt.Fprintf(b, ", failed %d of %d", c.Fails, c.MaxFails)
		}
	default:
		b.WriteString(c.Verdict.String())
	}
	if c.Detail != "" {
		fmt.Fprintf(b, ", %s", c.Detail)
	}
	if won {
		b.WriteString("  <- taken")
	}
}
