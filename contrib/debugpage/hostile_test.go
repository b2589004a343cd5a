package debugpage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/peer"
)

var hostile = []string{
	`<script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`,
	`' onmouseover='alert(1)`,
	`</script><script>alert(1)</script>`,
	`</style><script>alert(1)</script>`,
	`</title></pre></details><script>alert(1)</script>`,
	`<!-- `, `]]>`, `{{.}}`, `javascript:alert(1)`, `&lt;&#x3c;`, "`${alert(1)}`",
	"nul\x00 bell\x07 esc\x1b[31m tab\t line\nreturn\r",
	"bytes \xff\xfe\xc3(",
	"turn\u202eround\u2066 zero\u200bwidth line\u2028end",
	strings.Repeat("a", 1<<20),
	strings.Repeat("<b>", 1<<18),
	strings.Repeat("\u00e4", 1<<19),
	strings.Repeat("\x01", 1<<20),
	strings.Repeat("\x80", 1<<20),
}

// Everything that comes from outside stays text: names of upstreams and peers, keys,
// hints, what is searched for.
func TestHostileTexts(t *testing.T) {
	for i, text := range hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			page := debugpage.New(nil)
			panel := page.Panel(text)
			page.Panel("another")
			s := newStory(t, panel, hash.New("$uri"), peer.Server{Addr: text}, peer.Server{Addr: text + "2", Name: text}, peer.Server{Addr: text, Backup: true})
			r := s.begin(&peer.Request{Key: text, Hint: text})
			for addr := s.get(r); addr != ""; addr = s.get(r) {
				s.free(r, peer.Failed)
			}
			panel.Decision(&peer.Decision{Method: text, Client: text, Time: time.Unix(0, int64(s.now)), Peers: []peer.Candidate{{Addr: text, Detail: text}}})

			query := "?q=" + escape(text[:min(len(text), 8)])
			for _, q := range []string{"", query} {
				w := ask(t, page, q)
				if n := w.Body.Len(); n > 200_000 {
					t.Errorf("%s: the page has %d bytes", q, n)
				}
				for _, c := range w.Body.String() {
					if q != "" {
						break // the field holds what was asked for as it was
					}
					if c != '\n' && unicode.Is(unicode.Cf, c) || c < ' ' && c != '\n' || c == '\u2028' || c == unicode.ReplacementChar {
						t.Fatalf("%U in the page", c)
					}
				}
				d := parse(t, page, q)
				if n := len(d.all("script", "type", "")); n != len(d.all("script", "type", "application/json")) {
					t.Error("scripts of another type:", n)
				}
				equal(t, "scripts", len(d.all("script", "", ""))-len(d.all("script", "type", "application/json")), 1)
				for _, name := range []string{"img", "b"} {
					equal(t, name, len(d.all(name, "", "")), 0)
				}
				for _, e := range d.all("", "", "") {
					for _, a := range e.Attr {
						if strings.HasPrefix(a.Key, "on") || a.Key == "href" && strings.HasPrefix(a.Val, "javascript:") {
							t.Errorf("<%s %s=%q>", e.Data, a.Key, a.Val)
						}
					}
				}
			}
			equal(t, "JSON", len(report(t, page, "").Upstreams), 2)
		})
	}
}

func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

// A short name is shown as it is.
func TestNamesAreShownInFull(t *testing.T) {
	page := debugpage.New(nil)
	newStory(t, page.Panel("u"), nil, peer.Server{Addr: `<i>"&'`}, peer.Server{Addr: "z\u00fcrich\u202e\n"})
	rows := parse(t, page, "").all("tr", "data-peer", "")
	equal(t, "name", rows[0].all("th", "", "")[0].text(), `<i>"&'`)
	equal(t, "name", rows[1].all("th", "", "")[0].text(), "z\u00fcrich\\u202e\\n")
}

// A source or hook of somebody else's may say anything.
func TestSenselessStates(t *testing.T) {
	page := debugpage.New(nil)
	panel := page.Panel("u")
	panel.Decision(nil)
	panel.Decision(&peer.Decision{})
	panel.Decision(&peer.Decision{Winner: 7, Rule: "<script>", Peers: []peer.Candidate{{Group: -4, Verdict: 99}, {Group: 9}}})
	panel.Decision(&peer.Decision{Winner: -9, Time: time.Unix(0, -1<<63)})
	panel.Event(peer.Event{Kind: 99, Time: time.Unix(1<<40, 0)})
	panel.Event(peer.Event{Kind: peer.NoLivePeers, Decision: &peer.Decision{Winner: 3}})
	panel.Watch(senseless{})
	parse(t, page, "")
	parse(t, page, "?q=x")
	report(t, page, "")
	panel.Watch(nil)
	parse(t, page, "")
}

type senseless struct{}

func (senseless) Snapshot() peer.Snapshot {
	return peer.Snapshot{Time: time.Unix(-3600, 0), Peers: []peer.PeerSnapshot{
		{Peer: peer.Peer{Group: -1}}, {Peer: peer.Peer{Group: 77, Index: -3}},
		{Peer: peer.Peer{Server: peer.Server{Weight: -5}}, State: peer.State{CurrentWeight: -1 << 63, EffectiveWeight: 1<<63 - 1, Conns: -1}},
		{Peer: peer.Peer{Group: 1}}, {Peer: peer.Peer{Group: 1}},
	}}
}
