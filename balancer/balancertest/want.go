package balancertest

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/trunklb/trunk/peer"
)

// WantPicks sends as many requests as there are names in want, separated by
// spaces, and checks that they go to these peers in this order. Each is
// answered at once, before the next. NoPeer stands for a request that finds no live peer.
func (lb *LB) WantPicks(want string) {
	lb.t.Helper()
	names := strings.Fields(want)
	for i, name := range names {
		if name != NoPeer {
			names[i] = lb.known(name)
		}
	}
	got := make([]string, len(names))
	first, why := -1, ""
	for i := range names {
		got[i] = lb.Pick()
		if first < 0 && got[i] != names[i] {
			first, why = i, lb.why()
		}
	}
	if first >= 0 {
		lb.t.Errorf("the picks differ from the %s on:\n%s\nit was decided so:\n%s", ordinal(first+1), sideBySide(names, got, first), why)
	}
}

// WantShare sends n requests, each answered at once before the next, and checks
// that the peer gets this share of them, give or take: .01 is one in a hundred.
func (lb *LB) WantShare(n int, name string, share, giveOrTake float64) {
	lb.t.Helper()
	name = lb.known(name)
	counts := map[string]int{}
	var mine, other *peer.Decision
	for range n {
		got := lb.Pick()
		counts[got]++
		if got == name {
			mine = lb.decisions.last()
		} else {
			other = lb.decisions.last()
		}
	}
	got := float64(counts[name]) / float64(max(n, 1))
	// A share that was meant to be on the edge is not to fail by a rounding.
	if math.Abs(got-share) <= giveOrTake+1e-9 {
		return
	}
	// Of the picks that make the share wrong, the last one explains most.
	which, d := "the last that another got", other
	if got > share {
		which, d = "the last that it got", mine
	}
	lb.t.Errorf("%s got %d of %d picks, %s; want %s, give or take %s\n%s%s was decided so:\n%s", name, counts[name], n,
		percent(got), percent(share), percent(giveOrTake), lb.shares(counts, n), which, indent(d))
}

// WantNone checks that the peer gets no request for so long: it moves the clock
// on by a second and sends a request, which is answered at once, and so on to
// the end of d.
func (lb *LB) WantNone(name string, d time.Duration) {
	lb.t.Helper()
	name = lb.known(name)
	picks, mine, first, why := 0, 0, time.Duration(0), ""
	for at := time.Duration(0); at < d; {
		step := min(time.Second, d-at)
		lb.Advance(step)
		at += step
		picks++
		if lb.Pick() != name {
			continue
		}
		if mine++; mine == 1 {
			first, why = at, lb.why()
		}
	}
	if mine > 0 {
		lb.t.Errorf("%s got %d of %d picks in %v, the first after %v; want none\nit was decided so:\n%s", name, mine, picks, d, first, why)
	}
}

// why is how the last pick was decided, for a message.
func (k *kit) why() string { return indent(k.decisions.last()) }

func indent(d *peer.Decision) string {
	if d == nil {
		return "  (there was none)"
	}
	return "  " + strings.ReplaceAll(d.String(), "\n", "\n  ")
}

// sideBySide sets wanted and real picks under each other and marks the first
// that differs.
func sideBySide(want, got []string, first int) string {
	var rows [3]strings.Builder
	for i := range want {
		width := max(utf8.RuneCountInString(want[i]), utf8.RuneCountInString(got[i]))
		mark := ""
		if i == first {
			mark = strings.Repeat("^", width)
		}
		for row, word := range []string{want[i], got[i], mark} {
			fmt.Fprintf(&rows[row], " %-*s", width, word)
		}
	}
	line := func(title string, row int) string {
		return strings.TrimRight("  "+title+rows[row].String(), " ")
	}
	return line("want", 0) + "\n" + line("got ", 1) + "\n" + line("    ", 2)
}

// shares lists how many requests each peer got.
func (k *kit) shares(counts map[string]int, n int) string {
	var b strings.Builder
	seen := map[string]bool{}
	line := func(name, shown string) {
		if !seen[name] {
			seen[name] = true
			fmt.Fprintf(&b, "  %s %d, %s\n", shown, counts[name], percent(float64(counts[name])/float64(max(n, 1))))
		}
	}
	for _, s := range k.up.Snapshot().Peers {
		line(nameOf(s.Server), nameOf(s.Server))
	}
	if counts[NoPeer] > 0 {
		line(NoPeer, "no live peers")
	}
	return b.String()
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// ordinal returns "1st", "2nd", ...
func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}
