// Package picture writes the examples' SVG pictures: text, boxes and lines in a
// few classes, whose colours follow the reader's light or dark scheme. What knows no
// scheme and no CSS variables draws in the light colours.
package picture

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

// The classes that shapes and texts may have; several are separated by spaces.
//
// Texts: title, head, small, bold, end, middle; plain without. Colours:
// soft, base, loud (what is to be seen), calm (what is as it should be). Lines: line,
// thin, grid, axis, dashed.
var style = withFallback(`
svg{--paper:#fff;--ink:#1f2328;--soft:#59636e;--grid:#e4e8ec;--base:#cfd9e3;--loud:#e8590c;--calm:#0b7285;--edge:#d1d9e0}
@media(prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#f0f6fc;--soft:#9198a1;--grid:#22282f;--base:#303b47;--loud:#ff8a4c;--calm:#3bc9db;--edge:#3d444d}}
text{font:13px -apple-system,BlinkMacSystemFont,"Segoe UI","Noto Sans","DejaVu Sans",Helvetica,Arial,sans-serif;fill:var(--ink)}
.paper{fill:var(--paper);stroke:var(--edge)}
text.title{font-size:19px;font-weight:600}
text.head{font-size:14px;font-weight:600}
text.soft{fill:var(--soft)}
text.small{font-size:11.5px}
text.bold{font-weight:600}
text.end{text-anchor:end}
text.middle{text-anchor:middle}
text.loud{fill:var(--loud)}
text.calm{fill:var(--calm)}
rect.base{fill:var(--base)}
rect.loud{fill:var(--loud)}
rect.calm{fill:var(--calm)}
.line{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}
.line.loud{stroke:var(--loud)}
.line.calm{stroke:var(--calm)}
.line.thin{stroke-width:1.5}
.line.soft{stroke:var(--soft);stroke-width:1.4}
.grid{fill:none;stroke:var(--grid)}
.axis{fill:none;stroke:var(--soft)}
.dashed{stroke-dasharray:2 4}
`)

// withFallback puts the light colour before each use of a variable, as in
// fill:#fff;fill:var(--paper): only browsers know variables, and the others skip them.
func withFallback(style string) string {
	light := map[string]string{}
	for _, m := range regexp.MustCompile(`--(\w+):(#\w+)`).FindAllStringSubmatch(style, -1) {
		if light[m[1]] == "" { // the dark ones come later
			light[m[1]] = m[2]
		}
	}
	use := regexp.MustCompile(`(fill|stroke):var\(--(\w+)\)`)
	return use.ReplaceAllStringFunc(style, func(declaration string) string {
		m := use.FindStringSubmatch(declaration)
		return m[1] + ":" + light[m[2]] + ";" + declaration
	})
}

// Picture is an SVG in the making. Coordinates are pixels from the upper left corner.
type Picture struct {
	width, height float64
	body          strings.Builder
}

// New begins a picture. The description is for those who cannot see it.
func New(width, height float64, description string) *Picture {
	p := &Picture{width: width, height: height}
	fmt.Fprintf(&p.body, "<title>%s</title>\n", html.EscapeString(description))
	fmt.Fprintf(&p.body, `<rect class="paper" x=".5" y=".5" width="%s" height="%s" rx="8"/>`+"\n", num(width-1), num(height-1))
	return p
}

// Text writes a line whose baseline begins at x, y; or ends or has its middle
// there, by class.
func (p *Picture) Text(x, y float64, class, format string, args ...any) {
	fmt.Fprintf(&p.body, `<text x="%s" y="%s"%s>%s</text>`+"\n", num(x), num(y), classOf(class), html.EscapeString(fmt.Sprintf(format, args...)))
}

// Box fills a rectangle. Its opacity is from 0 to 1.
func (p *Picture) Box(x, y, width, height float64, class string, opacity float64) {
	shade := ""
	if opacity < 1 {
		shade = fmt.Sprintf(` fill-opacity="%.2f"`, opacity)
	}
	fmt.Fprintf(&p.body, `<rect x="%s" y="%s" width="%s" height="%s" rx="1.5"%s%s/>`+"\n", num(x), num(y), num(width), num(height), classOf(class), shade)
}

// A Point is a place in a picture.
type Point struct{ X, Y float64 }

// Line draws a line through the points.
func (p *Picture) Line(class string, points ...Point) {
	var d strings.Builder
	for i, at := range points {
		d.WriteByte("ML"[min(i, 1)])
		d.WriteString(num(at.X) + " " + num(at.Y))
	}
	fmt.Fprintf(&p.body, `<path%s d="%s"/>`+"\n", classOf(class), d.String())
}

// String returns the picture as an SVG document.
func (p *Picture) String() string {
	w, h := num(p.width), num(p.height)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`+
		"\n<style>%s</style>\n%s</svg>\n", w, h, w, h, style, p.body.String())
}

func classOf(class string) string {
	if class == "" {
		return ""
	}
	return ` class="` + class + `"`
}

// num writes a coordinate as short as can be.
func num(x float64) string {
	s := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.1f", x), "0"), ".")
	if s == "-0" || s == "" {
		return "0"
	}
	return s
}
