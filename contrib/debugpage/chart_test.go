package debugpage_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/peer"
)

// charted is the numbers in the page that the chart was drawn from.
type charted struct {
	Picks []struct {
		Seq  uint64
		Text string
	}
	Plots []struct {
		CW, EW []*int64
		Why    []string
		Took   []int
	}
}

func chartOf(t testing.TB, d document) (c charted) {
	t.Helper()
	data := d.all("script", "type", "application/json")
	equal(t, "charts", len(data), 1)
	if err := json.Unmarshal([]byte(data[0].FirstChild.Data), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func list(values []*int64) string {
	var texts []string
	for _, v := range values {
		if v == nil {
			texts = append(texts, "-")
		} else {
			texts = append(texts, fmt.Sprint(*v))
		}
	}
	return strings.Join(texts, " ")
}

// path is the line of a class in a plot.
func (d document) path(t testing.TB, class string) string {
	t.Helper()
	paths := d.all("svg", "class", "lines")[0].all("path", "class", class)
	equal(t, "paths of "+class, len(paths), 1)
	text, _ := paths[0].attr("d")
	return text
}

// nginx's own example: a a b a c a a.
func TestChartFollowsTheWeights(t *testing.T) {
	page := debugpage.New(nil)
	s := newStory(t, page.Panel("u"), nil, peer.Server{Addr: "a", Weight: 5}, peer.Server{Addr: "b"}, peer.Server{Addr: "c"})
	s.picks(7, "")
	d := parse(t, page, "")
	c := chartOf(t, d)
	equal(t, "cw of a, at the end now", list(c.Plots[0].CW), "-2 -4 1 -1 4 2 0 0")
	equal(t, "cw of b", list(c.Plots[1].CW), "1 2 -4 -3 -2 -1 0 0")
	equal(t, "a was taken", fmt.Sprint(c.Plots[0].Took), "[0 1 3 5 6]")
	equal(t, "what is said of the third", c.Picks[2].Text, "\u2192 b, greatest current weight")

	// Five above and four below zero: 75 units, of which zero is at 5/9.
	a := d.all("div", "class", "plot")[0]
	equal(t, "line", a.path(t, "cw"), "M0 67.3H1V84.0H2V42.3H3V59.0H4V17.3H5V34.0H6V50.7H8")
	equal(t, "debt", a.path(t, "debt"), "M0 67.3H1V50.7H0zM1 84.0H2V50.7H1zM3 59.0H4V50.7H3z")
	equal(t, "credit", a.path(t, "credit"), "M2 42.3H3V50.7H2zM4 17.3H5V50.7H4zM5 34.0H6V50.7H5z")
	equal(t, "ew", a.path(t, "ew"), "M0 9.0H8")
	label, _ := a.all("svg", "role", "img")[0].attr("aria-label")
	equal(t, "label", label, "a: current weight between -4 and 4, now 0; effective weight 5 of 5; taken in 5 of the last 7 picks; live")
}

func TestChartOfTheNight(t *testing.T) {
	page := debugpage.New(nil)
	night(t, page.Panel("u"))
	d := parse(t, page, "")
	heavy := d.all("div", "class", "plot")[0]
	equal(t, "times it was out", len(heavy.all("rect", "class", "band failed")), 1)
	equal(t, "failures", strings.Count(heavy.path(t, "failure"), "M"), 2)
	var was string
	for _, v := range chartOf(t, d).Plots[0].EW[98:106] {
		was += fmt.Sprint(*v, " ")
	}
	equal(t, "ew around the failures", was, "10 10 10 5 6 1 1 1 ")
}

// Backups that are not asked stay as they are; what was left out is not known.
func TestChartSaysWhatItDoesNotKnow(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Peers: 1})
	panel := page.Panel("u")
	a := peer.Candidate{Addr: "a", Weight: 1, EffectiveAfter: 1, CurrentAfter: -1}
	b := peer.Candidate{Addr: "b", Index: 1, Weight: 1, EffectiveAfter: 1, CurrentAfter: -2}
	backup := peer.Candidate{Addr: "c", Group: peer.Backup, Weight: 1, EffectiveAfter: 1, CurrentAfter: -3}
	for i, d := range []peer.Decision{
		{Winner: 0, Peers: []peer.Candidate{backup}},
		{Winner: 0, Peers: []peer.Candidate{a, b}},
		{Winner: 1, Peers: []peer.Candidate{a, b}},
		{Winner: 0, Peers: []peer.Candidate{a, b}},
		{Winner: 0, Peers: []peer.Candidate{backup}},
	} {
		d.Time = time.Unix(0, int64(i))
		panel.Decision(&d)
	}
	panel.Watch(fixed{a, b, backup})
	c := chartOf(t, parse(t, page, ""))
	equal(t, "a", list(c.Plots[0].CW), "- -1 - -1 -1 -1")
	equal(t, "b", list(c.Plots[1].CW), "- - -2 - - -2")
	equal(t, "backup", list(c.Plots[2].CW), "-3 -3 -3 -3 -3 -3")
	equal(t, "backup was taken", fmt.Sprint(c.Plots[2].Took), "[0 4]")
}

// fixed is a source whose peers are as a decision has left them.
type fixed []peer.Candidate

func (f fixed) Snapshot() (s peer.Snapshot) {
	for _, c := range f {
		s.Peers = append(s.Peers, peer.PeerSnapshot{
			Peer:  peer.Peer{Server: peer.Server{Addr: c.Addr, Weight: int(c.Weight)}, Group: c.Group, Index: c.Index},
			State: peer.State{CurrentWeight: c.CurrentAfter, EffectiveWeight: c.EffectiveAfter},
		})
	}
	return s
}

// A peer is followed by its address when its place changes, and by its place when
// its address is there twice.
func TestChartFollowsPeersThroughAChangeOfTheSet(t *testing.T) {
	page := debugpage.New(nil)
	s := newStory(t, page.Panel("u"), nil, peer.Server{Addr: "a"}, peer.Server{Addr: "b", Weight: 2})
	s.picks(3, "")
	if err := s.Update([]peer.Server{{Addr: "twin"}, {Addr: "b", Weight: 2}, {Addr: "twin"}}); err != nil {
		t.Fatal(err)
	}
	s.picks(4, "")
	c := chartOf(t, parse(t, page, ""))
	equal(t, "twin", fmt.Sprint(c.Plots[0].Took), "[4]")
	equal(t, "b", fmt.Sprint(c.Plots[1].Took), "[0 2 3 6]")
	equal(t, "other twin", fmt.Sprint(c.Plots[2].Took), "[5]")
}
