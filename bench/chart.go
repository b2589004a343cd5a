package main

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// chart is one picture: the cost of a pick and done against the number of peers.
type chart struct {
	file, title string
	lines       []line
}

type line struct {
	name, color string
	points      []point
}

// drawn are the contenders in the chart of growth, with weights 1..10 where they know any.
var drawn = []struct {
	name    string
	weights weights
	color   string
}{
	{"plain loop", upTo10, "#8a8a8a"},
	{"trunk round robin", upTo10, "#1f8a4c"},
	{"trunk least_conn", upTo10, "#6f58c9"},
	{"grpc weighted_round_robin", upTo10, "#c2571a"},
	{"kratos wrr", upTo10, "#b8860b"},
	{"kratos p2c", equal, "#c0398b"},
	{"caddy weighted_round_robin", upTo10, "#2878c8"},
}

// The chart: both axes are logarithmic.
const (
	width, height            = 760, 440
	left, right, top, bottom = 64, 540, 24, 392
	minN, maxN               = 3.0, 10_000.0
	minNS, maxNS             = 10.0, 1_000_000.0
)

func xOf(n float64) float64 {
	return left + (right-left)*math.Log(n/minN)/math.Log(maxN/minN)
}

func yOf(ns float64) float64 {
	return bottom - (bottom-top)*math.Log(min(max(ns, minNS), maxNS)/minNS)/math.Log(maxNS/minNS)
}

// charts are all of them; but for the first they are measured here.
func charts(t timing, g growth) []chart {
	growth := chart{"cost.svg", "Cost of a pick and done against the number of peers", nil}
	for _, d := range drawn {
		growth.lines = append(growth.lines, line{d.name, d.color, g.line(d.name, d.weights)})
	}
	return []chart{growth,
		measured(t, "cost-least-conn.svg", "Cost of a pick and done by least_conn and least_time, idle peers of equal weight", healthy,
			map[string]string{"plain least_conn": "#8a8a8a", "trunk least_conn": "#6f58c9", "trunk least_time": "#1f8a4c", "caddy least_conn": "#2878c8"}),
		measured(t, "cost-dead.svg", "Cost of a pick and done with half of the peers dead, equal weights", halfDead,
			map[string]string{"plain loop": "#8a8a8a", "trunk round robin": "#1f8a4c", "trunk least_conn": "#6f58c9", "kratos p2c": "#c0398b"}),
	}
}

// measured is a chart of contenders by colour, with peers of equal weight.
func measured(t timing, file, title string, h health, colors map[string]string) chart {
	list := named(slices.Sorted(maps.Keys(colors))...)
	c := chart{file, title, make([]line, len(list))}
	for _, n := range sizes {
		for i, cell := range compare(t, scenario{n: n, weights: equal, health: h}, list) {
			c.lines[i].name, c.lines[i].color = list[i].name, colors[list[i].name]
			if cell.ok {
				c.lines[i].points = append(c.lines[i].points, point{xOf(float64(n)), yOf(cell.ns)})
			}
		}
	}
	return c
}

// write draws nanoseconds against the number of peers into a directory.
func (c chart) write(dir string) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">
<title>%s</title>
<style>
.ink { fill: #24292f } .line { stroke: #d0d7de }
@media (prefers-color-scheme: dark) { .ink { fill: #e6edf3 } .line { stroke: #3d444d } }
</style>
`, width, height, c.title)
	for _, n := range sizes {
		x := xOf(float64(n))
		fmt.Fprintf(&b, `<line class="line" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", x, x, top, bottom)
		fmt.Fprintf(&b, `<text class="ink" x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x, bottom+18, n)
	}
	for i, name := range []string{"10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms"} {
		y := yOf(minNS * math.Pow10(i))
		fmt.Fprintf(&b, `<line class="line" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`+"\n", left, right, y, y)
		fmt.Fprintf(&b, `<text class="ink" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y+4, name)
	}
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="%d" text-anchor="middle">peers</text>`+"\n", (left+right)/2, bottom+38)
	label := labels{}
	for _, l := range c.lines {
		label.draw(&b, l.name, l.color, l.points)
	}
	label.write(&b)
	b.WriteString("</svg>\n")
	return os.WriteFile(filepath.Join(dir, c.file), []byte(b.String()), 0o644)
}

type point struct{ x, y float64 }

// line is one contender's points.
func (g growth) line(name string, w weights) []point {
	var points []point
	for i, c := range contenders {
		if c.name != name {
			continue
		}
		for _, n := range sizes {
			if cell := g[w][n][i]; cell.ok {
				points = append(points, point{xOf(float64(n)), yOf(cell.ns)})
			}
		}
	}
	return points
}
