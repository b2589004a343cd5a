package main

import (
	"fmt"

	"github.com/trunklb/trunk/examples/internal/picture"
)

const margin = 30

// draw makes the picture: for each way to start, a cell for each backend and
// step, the fuller the more clients ask it then, and below it the most that any
// backend is asked at once.
func draw(together, apart load) string {
	p := picture.New(960, 452, fmt.Sprintf("Fifty fresh clients and eight backends. As nginx starts, all fifty ask the same backend at once, one after the other; "+
		"with RandomStart never more than %d, which is near what the weights say.", apart.most()))
	p.Text(margin, 42, "title", "Fifty clients start at once")
	p.Text(margin, 64, "soft", "Each balances by the weights, a=3 and the others 1. Every column is one request of all fifty, every row a backend.")
	panel(p, picture.Point{X: margin, Y: 104}, "As nginx starts", "loud", together)
	panel(p, picture.Point{X: 498, Y: 104}, "RandomStart", "calm", apart)
	return p.String()
}

func panel(p *picture.Picture, at picture.Point, title, class string, l load) {
	const (
		left         = 22.0
		cell, pitch  = 18.0, 20.4
		bars, height = 286.0, 60.0
	)
	p.Text(at.X, at.Y, "head "+class, "%s", title)
	top := at.Y + 20
	for b, server := range backends {
		y := top + float64(b)*pitch
		p.Text(at.X, y+13, "small soft", "%s", server.Addr)
		for s := range l {
			x := at.X + left + float64(s)*pitch
			p.Box(x, y, cell, cell, "base", .35)
			if n := l[s][b]; n > 0 {
				p.Box(x, y, cell, cell, class, max(.06, float64(n)/clients))
			}
		}
	}
	// The wave: how full the fullest backend is in each step.
	floor := at.Y + bars
	right := at.X + left + steps*pitch - (pitch - cell)
	y := func(n int) float64 { return floor - height*float64(n)/clients }
	p.Text(at.X+left, y(clients)-16, "small soft", "clients on the fullest backend")
	p.Text(right, y(clients)-16, "small bold end "+class, "up to %d", l.most())
	for _, n := range []int{0, clients} {
		p.Line("grid", picture.Point{X: at.X + left, Y: y(n)}, picture.Point{X: right, Y: y(n)})
		p.Text(at.X+left-6, y(n)+4, "small soft end", "%d", n)
	}
	for s := range l {
		most := 0
		for _, n := range l[s] {
			most = max(most, n)
		}
		p.Box(at.X+left+float64(s)*pitch, y(most), cell, floor-y(most), class, 1)
	}
	p.Line("axis dashed", picture.Point{X: at.X + left, Y: y(fair(0))}, picture.Point{X: right, Y: y(fair(0))})
	for s := 0; s < steps; s += 5 {
		p.Text(at.X+left+float64(s)*pitch+cell/2, floor+18, "small soft middle", "%d.", s+1)
	}
	p.Text(right, floor+18, "small soft end", "request")
	p.Text(at.X+left, floor+40, "small soft", "dotted: a's fair part, %d of %d", fair(0), clients)
}
