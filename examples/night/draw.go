package main

import (
	"fmt"
	"strings"

	"github.com/trunklb/trunk/examples/internal/picture"
)

const (
	width, height = 960, 640
	margin        = 30
)

// draw makes the picture: who got the first requests under each policy, and below
// it a's effective weight and b's surplus, nginx beside the remedy.
func draw(nights []night) string {
	p := picture.New(width, height, "The morning after two failures: with nginx's arithmetic the server of weight 1 "+
		"gets 3 of the first 11 requests and keeps about two too many; with weight coming back by time and debt forgiven it gets 1 of 11.")
	p.Text(margin, 42, "title", "The morning after")
	p.Text(margin, 64, "soft", "a has weight 10, max_fails=2; b has weight 1. At 23:00 a fails twice. Since then all is well. At 6:00 the requests come.")
	strips(p, nights, 100)
	weights(p, nights, picture.Point{X: margin, Y: 412})
	surplus(p, nights, picture.Point{X: 508, Y: 412})
	return p.String()
}

// strips draws the first requests of the morning as a row of cells for each
// policy, in groups of eleven, each of which should have one of b.
func strips(p *picture.Picture, nights []night, y float64) {
	const (
		cells, group    = 55, 11
		left, w         = 282.0, 7.2
		step, gap       = 8.4, 7.0
		eleven          = 824.0
		all             = 896.0
		rowHeight, cell = 32.0, 20.0
	)
	x := func(k int) float64 { return left + float64(k)*step + float64(k/group)*gap }
	p.Text(left, y, "small soft", "the first %d requests, in elevens", cells)
	p.Box(x(33), y-9, w, 10, "base", 1)
	p.Text(x(33)+12, y, "small soft", "to a")
	p.Box(x(40), y-9, w, 10, "loud", 1)
	p.Text(x(40)+12, y, "small soft", "to b")
	p.Text(eleven, y, "small soft middle", "b, of %d", group)
	p.Text(all, y, "small soft middle", "b, of %d", morningPicks)
	y += 13
	for i, n := range nights {
		label, figures := "", "middle bold"
		switch i {
		case nginx:
			label, figures = "bold loud", figures+" loud"
		case both:
			label, figures = "bold calm", figures+" calm"
		}
		p.Text(margin, y+10, label, "%s", n.name)
		p.Text(margin, y+24, "small soft", "%s", n.code)
		for k, s := range n.morning[:cells] {
			class := "base"
			if s.picked == "b" {
				class = "loud"
			}
			p.Box(x(k), y, w, cell, class, 1)
		}
		p.Text(eleven, y+15, figures, "%d", n.toB(group))
		p.Text(all, y+15, figures, "%d", n.toB(morningPicks))
		y += rowHeight
	}
	y += 4
	p.Text(margin, y+12, "soft", "by the weights, 10:1")
	p.Text(eleven, y+12, "middle soft", "%.0f", fair(group))
	p.Text(all, y+12, "middle soft", "%.1f", fair(morningPicks))
}

// weights draws a's effective weight: the two failures and the minute after
// them, a gap, and the first requests of the morning.
func weights(p *picture.Picture, nights []night, at picture.Point) {
	const (
		w, h   = 430.0, 150.0
		left   = 24.0
		evenly = 24.0  // for each of the steps of the evening
		minute = 108.0 // for the time after the failures
		dawn   = 242.0 // where the morning begins
		shown  = 16
		each   = (w - dawn) / shown
	)
	p.Text(at.X, at.Y, "head", "What a's weight counts")
	p.Text(at.X, at.Y+18, "small soft", "nginx gives it back by requests, so the night heals nothing")
	top := at.Y + 40
	y := func(weight float64) float64 { return top + h - weight/10*h }
	for _, weight := range []float64{0, 5, 10} {
		p.Line("grid", picture.Point{X: at.X + left, Y: y(weight)}, picture.Point{X: at.X + w, Y: y(weight)})
		p.Text(at.X+left-8, y(weight)+4, "small soft end", "%.0f", weight)
	}
	curve := func(n night) (line []picture.Point) {
		x := at.X + left
		to := func(weight int64) { line = append(line, picture.Point{X: x, Y: y(float64(weight))}) }
		for i, s := range n.evening {
			if i > 0 { // a failure is a fall
				to(n.evening[i-1].a.EffectiveWeight)
			}
			to(s.a.EffectiveWeight)
			x += evenly
		}
		x -= evenly
		for i, weight := range n.minute {
			x = at.X + left + 2*evenly + minute*float64(i)/float64(len(n.minute)-1)
			to(weight)
		}
		x = at.X + dawn
		to(n.minute[len(n.minute)-1])
		for i, s := range n.morning[:shown] {
			x = at.X + dawn + float64(i+1)*each
			to(s.a.EffectiveWeight)
		}
		return line
	}
	eve, night := at.X+left+2*evenly, at.X+left+2*evenly+minute
	p.Box(night, top, at.X+dawn-night, h, "base", .35)
	p.Text((night+at.X+dawn)/2, y(5)-4, "small soft middle", "seven")
	p.Text((night+at.X+dawn)/2, y(5)+10, "small soft middle", "hours")
	p.Line("line calm", curve(nights[both])...)
	p.Line("line loud", curve(nights[nginx])...)
	p.Text(at.X+left+evenly+4, y(7.8), "small soft", "fails,")
	p.Text(eve-4, y(2.5), "small soft end", "again")
	p.Text(eve+.4*minute, y(5)+14, "small bold calm", "Recovery")
	p.Text(at.X+dawn+5*each, y(4), "small bold loud", "nginx")

	under := top + h + 18
	p.Text(at.X+left, under, "small soft", "23:00")
	p.Text(night, under, "small soft end", "a minute later")
	p.Text(at.X+dawn, under, "small soft", "6:00")
	p.Text(at.X+w, under, "small soft end", "%d requests later", shown)
}

// surplus draws how many requests b got more than its weight says.
func surplus(p *picture.Picture, nights []night, at picture.Point) {
	const (
		w, h      = 422.0, 150.0
		left      = 24.0
		low, high = -1.0, 3.0
	)
	p.Text(at.X, at.Y, "head", "What b got too much")
	p.Text(at.X, at.Y+18, "small soft", "beyond its eleventh of the requests: nginx never settles it")
	top := at.Y + 40
	y := func(over float64) float64 { return top + h - (over-low)/(high-low)*h }
	x := func(n int) float64 { return at.X + left + (w-left)*float64(n)/morningPicks }
	for over := low; over <= high; over++ {
		class := "grid"
		if over == 0 {
			class = "axis"
		}
		p.Line(class, picture.Point{X: x(0), Y: y(over)}, picture.Point{X: x(morningPicks), Y: y(over)})
		sign := fmt.Sprintf("%+.0f", over)
		if over == 0 {
			sign = "0"
		}
		p.Text(x(0)-8, y(over)+4, "small soft end", "%s", strings.Replace(sign, "-", "−", 1))
	}
	curve := func(n night) []picture.Point {
		line := []picture.Point{{X: x(0), Y: y(0)}}
		for i := range n.morning {
			if n.morning[i].picked == "b" { // a step up, else slowly down
				line = append(line, picture.Point{X: x(i), Y: y(float64(n.toB(i)) - fair(i))})
			}
			line = append(line, picture.Point{X: x(i + 1), Y: y(float64(n.toB(i+1)) - fair(i+1))})
		}
		return line
	}
	p.Line("line thin calm", curve(nights[both])...)
	p.Line("line thin loud", curve(nights[nginx])...)
	under := top + h + 18
	for n := 0; n <= morningPicks; n += 50 {
		p.Text(x(n), under, "small soft middle", "%d", n)
	}
	p.Text(x(morningPicks), y(2.55), "small bold loud end", "nginx")
	p.Text(x(morningPicks), y(-.85), "small bold calm end", "Recovery and Forgive")
}
