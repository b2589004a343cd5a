package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// labels are the names beside the ends of the lines, kept apart.
type labels []label

type label struct {
	text, color string
	y           float64
}

const labelHeight = 16

func (l *labels) draw(b *strings.Builder, name, color string, points []point) {
	if len(points) == 0 {
		return
	}
	b.WriteString(`<polyline fill="none" stroke="` + color + `" stroke-width="2" points="`)
	for _, p := range points {
		fmt.Fprintf(b, "%.1f,%.1f ", p.x, p.y)
	}
	b.WriteString(`"/>` + "\n")
	for _, p := range points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", p.x, p.y, color)
	}
	*l = append(*l, label{name, color, points[len(points)-1].y})
}

func (l labels) write(b *strings.Builder) {
	slices.SortFunc(l, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	least := 0.0
	for _, one := range l {
		y := max(one.y, least)
		least = y + labelHeight
		fmt.Fprintf(b, `<rect x="%d" y="%.1f" width="10" height="10" fill="%s"/>`, right+14, y-5, one.color)
		fmt.Fprintf(b, `<text class="ink" x="%d" y="%.1f">%s</text>`+"\n", right+30, y+4, one.text)
	}
}
