package picture_test

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/examples/internal/picture"
)

// What is drawn is XML, whatever the texts.
func TestPicture(t *testing.T) {
	p := picture.New(100, 50, `a "title" & more`)
	p.Text(10, 20.25, "head end", "%d < %d & so on", 1, 2)
	p.Text(0, 0, "", "plain")
	p.Box(-0.01, 1.5, 10, 10, "loud", .25)
	p.Line("line calm", picture.Point{X: 1, Y: 2}, picture.Point{X: 3.75, Y: 4})
	svg := p.String()

	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
	}
	for _, want := range []string{
		`<title>a &#34;title&#34; &amp; more</title>`,
		`<text x="10" y="20.2" class="head end">1 &lt; 2 &amp; so on</text>`,
		`<text x="0" y="0">plain</text>`,
		`<rect x="0" y="1.5" width="10" height="10" rx="1.5" class="loud" fill-opacity="0.25"/>`,
		`<path class="line calm" d="M1 2L3.8 4"/>`,
		`.paper{fill:#fff;fill:var(--paper);stroke:#d1d9e0;stroke:var(--edge)}`, // rsvg-convert knows no variables
	} {
		require.Contains(t, svg, want)
	}
	guarded := regexp.MustCompile(`(fill|stroke):#\w+;(fill|stroke):var\(`).FindAllString(svg, -1)
	require.Len(t, guarded, strings.Count(svg, "var("), "a variable without a colour before it")
}
