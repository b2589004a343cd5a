package debugpage

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trunklb/trunk/peer"
)

// The chart has one plot for each peer, all in the same scale: current weight as
// an area, credit above zero and debt below, and effective weight as a line. One
// unit to the right is a pick; the last column is now. Plots are stretched to
// the width of the screen; text is therefore in axes of its own, which do not scale.
const (
	plotHeight = 100 // in the plot's units
	plotTop    = 9
	plotBottom = 84
	ticksTop   = 91 // of the marks for who was taken
	axisHeight = 88 // in pixels, as in the style
	fewest     = 24 // columns, or few picks would be large blocks
)

type chart struct {
	Width, Height int
	Plots         []plot
	Missing       int    // peers without a plot
	First, Last   uint64 // numbers of the picks
	Zero          string
	Lowest        int64 // of the scale
	Highest       int64
	Axis          []mark
	Data          chartData
}

// mark is a number on the axis.
type mark struct {
	Y    string
	Text string
}

type plot struct {
	Row                row
	Label              string // for those who do not see it
	Weight             string // height of the configured weight
	Credit, Debt       string // paths
	Current, Effective string
	Taken              string
	Failed             string
	Bands              []band
	Now                string // x of the last column
}

// band is a time in which the peer was not available.
type band struct {
	X, Width int
	Why      string
}

// chartData is the chart's numbers, for the script.
type chartData struct {
	Picks []pickData `json:"picks"`
	Plots []plotData `json:"plots"`
}

type pickData struct {
	Seq  uint64 `json:"seq"` // 0: now
	Time string `json:"time"`
	Text string `json:"text"`
}

type plotData struct {
	CW   []*int64 `json:"cw"`
	EW   []*int64 `json:"ew"`
	Why  []string `json:"why"`
	Took []int    `json:"took"`
}

// point is a peer's state after a pick.
type point struct {
	known   bool
	cw, ew  int64
	fails   int64
	verdict peer.Verdict
	taken   bool
}

// chart draws rows over the picks.
func (o *Options) chart(k *kept, rows []row) chart {
	c := chart{Height: plotHeight}
	if len(k.picks) == 0 || len(rows) == 0 {
		return c
	}
	lines := points(k, rows)
	c.Width = max(fewest, len(k.picks)+1)
	c.First, c.Last = k.picks[0].seq, k.picks[len(k.picks)-1].seq
	c.scale(rows, lines)
	for i := range rows {
		c.Plots = append(c.Plots, c.plot(&rows[i], lines[i], len(k.picks)))
		c.Data.Plots = append(c.Data.Plots, numbers(lines[i]))
	}
	for i := range k.picks {
		d := &k.picks[i]
		text := "no live upstreams"
		if w := d.winner(); w != nil {
			text = "\u2192 " + o.shown(Addr, w.Addr) + ", " + d.Rule
		}
		c.Data.Picks = append(c.Data.Picks, pickData{d.seq, clock(d.Time), text})
	}
	if k.watched {
		c.Data.Picks = append(c.Data.Picks, pickData{0, clock(k.snapshot.Time), "now"})
	}
	return c
}

// points follows each row through the picks, and to now.
func points(k *kept, rows []row) [][]point {
	find := newFinder(rows)
	lines := make([][]point, len(rows))
	for i := range k.picks {
		d := &k.picks[i]
		var asked [2]bool
		for n := range lines {
			lines[n] = append(lines[n], point{})
		}
		for n := range d.Peers {
			p := &d.Peers[n]
			if p.Group == peer.Primary || p.Group == peer.Backup {
				asked[p.Group] = true
			}
			if r := find.row(p); r >= 0 {
				lines[r][i] = point{true, p.CurrentAfter, p.EffectiveAfter, p.Fails, p.Verdict, n == d.Winner}
			}
		}
		for n := range lines {
			// A group that is not asked stays as it is. A peer that was left out
			// for want of room does not.
			now := &lines[n][i]
			if g := rows[n].Group; i > 0 && !now.known && g < len(asked) && !asked[g] {
				*now = lines[n][i-1]
				now.taken = false
			}
		}
	}
	if k.watched {
		for n := range rows {
			lines[n] = append(lines[n], rows[n].point())
		}
	}
	return lines
}

// point is the row as it is now.
func (r *row) point() point {
	p := point{known: true, cw: r.CurrentWeight, ew: r.EffectiveWeight, fails: r.Fails}
	switch r.State {
	case out:
		p.verdict = peer.FailedOut
	case full:
		p.verdict = peer.Full
	case down:
		p.verdict = peer.Down
	case draining:
		p.verdict = peer.Draining
	}
	return p
}

// scale finds the range that all plots share.
func (c *chart) scale(rows []row, lines [][]point) {
	c.Highest = 1
	for n := range lines {
		c.Highest = max(c.Highest, int64(rows[n].Server.Weight))
		for _, p := range lines[n] {
			c.Lowest, c.Highest = min(c.Lowest, p.cw), max(c.Highest, p.cw, p.ew)
		}
	}
	c.Zero = c.y(0)
	// Numbers that would overlap are left out.
	c.Axis = []mark{{c.axisY(c.Highest), number(c.Highest)}, {c.axisY(0), "0"}}
	if c.height(c.Lowest)-c.height(0) > 16 {
		c.Axis = append(c.Axis, mark{c.axisY(c.Lowest), number(c.Lowest)})
	}
	if c.height(0)-c.height(c.Highest) <= 16 {
		c.Axis = c.Axis[1:]
	}
}

func (c *chart) height(v int64) float64 {
	span := float64(c.Highest) - float64(c.Lowest)
	return plotTop + (float64(c.Highest)-float64(v))/span*(plotBottom-plotTop)
}

func (c *chart) y(v int64) string { return short(c.height(v)) }

func (c *chart) axisY(v int64) string { return short(c.height(v) * axisHeight / plotHeight) }

func short(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

func (c *chart) plot(r *row, line []point, of int) plot {
	p := plot{Row: *r, Weight: c.y(int64(r.Server.Weight)), Now: strconv.Itoa(len(line) - 1)}
	p.Current = c.steps(line, func(p point) int64 { return p.cw })
	p.Effective = c.steps(line, func(p point) int64 { return p.ew })
	p.Credit = c.area(line, func(p point) int64 { return max(0, p.cw) })
	p.Debt = c.area(line, func(p point) int64 { return min(0, p.cw) })
	var taken, failed strings.Builder
	fails, before := int64(0), peer.Considered
	low, high, picks := line[0].cw, line[0].cw, 0
	for x, at := range line {
		low, high = min(low, at.cw), max(high, at.cw)
		if at.taken {
			picks++
			fmt.Fprintf(&taken, "M%d %dh.8v%dh-.8z", x, ticksTop, plotHeight-ticksTop)
		}
		if at.known && at.fails > fails && x > 0 {
			fmt.Fprintf(&failed, "M%d %dV%d", x, plotTop, plotHeight)
		}
		if at.known {
			fails = at.fails
		}
		switch bands := len(p.Bands); {
		case !at.known || at.verdict == peer.Considered || at.verdict == peer.Tried:
			before = peer.Considered
		case at.verdict == before:
			p.Bands[bands-1].Width++
		default:
			before = at.verdict
			p.Bands = append(p.Bands, band{x, 1, at.verdict.String()})
		}
	}
	p.Taken, p.Failed = taken.String(), failed.String()
	p.Label = fmt.Sprintf("%s: current weight between %d and %d, now %d; effective weight %d of %d; taken in %d of the last %d picks; %s",
		r.Addr, low, high, r.CurrentWeight, r.EffectiveWeight, r.Server.Weight, picks, of, r.State.Word)
	return p
}

// steps is a line with one step per pick, interrupted where nothing is known.
func (c *chart) steps(line []point, value func(point) int64) string {
	var b strings.Builder
	drawing, last := false, int64(0)
	for x, p := range line {
		switch v := value(p); {
		case !p.known:
			if drawing {
				fmt.Fprintf(&b, "H%d", x)
			}
			drawing = false
		case !drawing:
			fmt.Fprintf(&b, "M%d %s", x, c.y(v))
			drawing, last = true, v
		case v != last:
			fmt.Fprintf(&b, "H%dV%s", x, c.y(v))
			last = v
		}
	}
	if drawing {
		fmt.Fprintf(&b, "H%d", len(line))
	}
	return b.String()
}

// area is the surface between zero and steps.
func (c *chart) area(line []point, value func(point) int64) string {
	var b strings.Builder
	for x := 0; x < len(line); {
		v, from := value(line[x]), x
		for x < len(line) && line[x].known == line[from].known && value(line[x]) == v {
			x++
		}
		if line[from].known && v != 0 {
			fmt.Fprintf(&b, "M%d %sH%dV%sH%dz", from, c.y(v), x, c.Zero, from)
		}
	}
	return b.String()
}

// numbers is a line for the script.
func numbers(line []point) plotData {
	d := plotData{Took: []int{}}
	for x, p := range line {
		var cw, ew *int64
		why := ""
		if p.known {
			cw, ew = &p.cw, &p.ew
			if p.verdict != peer.Considered {
				why = p.verdict.String()
			}
		}
		d.CW, d.EW, d.Why = append(d.CW, cw), append(d.EW, ew), append(d.Why, why)
		if p.taken {
			d.Took = append(d.Took, x)
		}
	}
	return d
}
