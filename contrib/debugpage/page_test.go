package debugpage_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

func TestTheTableIsTheSnapshot(t *testing.T) {
	page := debugpage.New(nil)
	up := night(t, page.Panel("backend"))
	held := newStory(t, page.Panel("api"), leastconn.New(),
		peer.Server{Addr: "a:1", Weight: 3, MaxConns: 1}, peer.Server{Addr: "b:1", Down: true}, peer.Server{Addr: "c:1", Drain: true},
		peer.Server{Addr: "d:1", Name: "d.example", MaxFails: peer.NoMaxFails}, peer.Server{Addr: "e:1", Backup: true})
	held.get(held.begin(&peer.Request{}))
	held.picks(5, "d:1")

	d := parse(t, page, "")
	panels := d.all("section", "data-upstream", "")
	equal(t, "panels", len(panels), 2)
	for i, s := range []*story{up, held} {
		peers := s.Snapshot().Peers
		rows := panels[i].all("tr", "data-peer", "")
		equal(t, "rows", len(rows), len(peers))
		for n, p := range peers {
			addr, _ := rows[n].attr("data-peer")
			equal(t, "addr", addr, p.Server.Addr)
			for field, want := range map[string]any{
				"cw": p.CurrentWeight, "ew": p.EffectiveWeight, "weight": p.Server.Weight, "conns": p.Conns,
				"fails": p.Fails, "gets": p.Gets, "failed": p.Failed,
			} {
				equal(t, addr+" "+field, rows[n].value(t, field), fmt.Sprint(want))
			}
		}
	}
	for n, want := range []string{"full", "down", "draining", "live", "live"} {
		row := panels[1].all("tr", "data-peer", "")[n]
		equal(t, "state", row.all("", "data-field", "state")[0].text(), want)
	}
}

func TestSharesWantedAndGot(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Picks: 11})
	s := newStory(t, page.Panel("u"), nil, peer.Server{Addr: "a", Weight: 10}, peer.Server{Addr: "b"}, peer.Server{Addr: "c", Weight: 5, Down: true},
		peer.Server{Addr: "d", Backup: true})
	s.picks(11, "a") // a is out after the first
	row := func(addr string) document { return parse(t, page, "").all("tr", "data-peer", addr)[0] }
	equal(t, "a is wanted for", row("a").value(t, "wanted"), fmt.Sprint(10.0/11))
	equal(t, "c is wanted for", row("c").value(t, "wanted"), "0")
	equal(t, "d is wanted for, of the backups", row("d").value(t, "wanted"), "1")
	equal(t, "a got ever", row("a").value(t, "got"), fmt.Sprint(1.0/12))
	equal(t, "a got lately", row("a").value(t, "recent"), "0")
	equal(t, "b got lately", row("b").value(t, "recent"), "1")
	equal(t, "c has failed out of", row("a").all("", "data-field", "state")[0].text(), "out probe in 8.8 s")
}

func TestDecisionsAndEventsInWords(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Decisions: 3})
	s := newStory(t, page.Panel("u"), nil, peer.Server{Addr: "a", Weight: 10, MaxFails: 2}, peer.Server{Addr: "b"})
	s.picks(2, "a")
	s.begin(&peer.Request{})
	d := parse(t, page, "")
	texts := d.all("ol", "class", "decisions")[0].all("pre", "", "")
	equal(t, "decisions", len(texts), 3)
	equal(t, "the newest", texts[0].text(), "round robin, try 2 (1 left): b, greatest current weight a weight=10: tried b weight=1: conns 0, cw 2+1-1=2 <- taken")
	var events []string
	for _, e := range d.all("ol", "class", "events")[0].all("li", "", "") {
		events = append(events, e.text())
	}
	want := []string{
		"22:13:20.200 200 ms ago ejected a 2 of 2, ew 6 \u2192 1",
		"22:13:20.200 200 ms ago failed a 2 of 2, ew 6 \u2192 1",
		"22:13:20.000 400 ms ago failed a 1 of 2, ew 10 \u2192 5",
	}
	equal(t, "events", strings.Join(events, "\n"), strings.Join(want, "\n"))
}

func TestSearch(t *testing.T) {
	page := debugpage.New(nil)
	night(t, page.Panel("backend"))
	for query, want := range map[string]string{
		"": "10.0.0.1:8080 10.0.0.2:8080", "0.2": "10.0.0.2:8080", "RECOVER": "10.0.0.1:8080", "nobody": "", "\x00": "",
	} {
		t.Run(query, func(t *testing.T) {
			d := parse(t, page, "?q="+strings.ReplaceAll(query, "\x00", "%00"))
			var rows, plots []string
			for _, r := range d.all("tr", "data-peer", "") {
				addr, _ := r.attr("data-peer")
				rows = append(rows, addr)
			}
			for _, p := range d.all("div", "class", "plot") {
				plots = append(plots, p.all("span", "class", "name")[0].text())
			}
			equal(t, "rows", strings.Join(rows, " "), want)
			equal(t, "plots", strings.Join(plots, " "), want)
			for _, li := range d.all("ol", "class", "decisions") {
				if query == "0.2" && strings.Contains(li.text(), "\u2192 10.0.0.1") {
					t.Error("a decision for another peer")
				}
			}
			got, _ := d.all("input", "name", "q")[0].attr("value")
			equal(t, "the field", got, strings.ReplaceAll(query, "\x00", "\ufffd"))
		})
	}
}

func TestOneUpstreamOfSeveral(t *testing.T) {
	page := debugpage.New(nil)
	for _, name := range []string{"a&b=c", "d"} {
		newStory(t, page.Panel(name), nil, peer.Server{Addr: "x"})
	}
	d := parse(t, page, "")
	links := d.all("nav", "", "")[0].all("a", "", "")
	equal(t, "links", len(links), 3)
	to, _ := links[1].attr("href")
	one := parse(t, page, to).all("section", "data-upstream", "")
	equal(t, "panels", len(one), 1)
	name, _ := one[0].attr("data-upstream")
	equal(t, "name", name, "a&b=c")
	equal(t, "panels of no upstream", len(parse(t, page, "?upstream=no").all("section", "data-upstream", "")), 0)

	first := page.Panel("d")
	equal(t, "the panel of the same name", page.Panel("d"), first)
	page.Remove("d")
	equal(t, "panels after Remove", len(parse(t, page, "").all("section", "data-upstream", "")), 1)
	equal(t, "panels of an empty page", len(parse(t, debugpage.New(nil), "").all("section", "data-upstream", "")), 0)
}

// Great upstreams are cut, those in trouble last.
func TestRowsAreBounded(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Rows: 3, Charted: 2, Peers: 4})
	var servers []peer.Server
	for i := range 1000 {
		servers = append(servers, peer.Server{Addr: fmt.Sprint("p", i), Down: i == 900})
	}
	s := newStory(t, page.Panel("u"), nil, servers...)
	s.picks(700, "p650")
	d := parse(t, page, "")
	var rows []string
	for _, r := range d.all("tr", "data-peer", "") {
		addr, _ := r.attr("data-peer")
		rows = append(rows, addr)
	}
	equal(t, "rows", strings.Join(rows, " "), "p0 p650 p900")
	equal(t, "plots", len(d.all("div", "class", "plot")), 2)
	equal(t, "more", d.all("p", "class", "more")[0].text(), "997 more of 1,000 peers: search for them.")
}

// Hooks alone make a page too.
func TestWithoutSnapshots(t *testing.T) {
	page := debugpage.New(nil)
	s := night(t, page.Panel("u"))
	s.panel.Watch(nil)
	d := parse(t, page, "")
	equal(t, "rows", len(d.all("tr", "data-peer", "")), 0)
	equal(t, "plots", len(d.all("div", "class", "plot")), 2)
	equal(t, "decisions", len(d.all("ol", "class", "decisions")[0].all("li", "", "")), 20)
}

func TestOnlyReads(t *testing.T) {
	page := debugpage.New(nil)
	night(t, page.Panel("u"))
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, "/debug/upstreams/", strings.NewReader("x"))
		r.Host = "localhost"
		page.ServeHTTP(w, r)
		equal(t, method, w.Code, http.StatusMethodNotAllowed)
		equal(t, "Allow", w.Header().Get("Allow"), "GET, HEAD")
	}
	server := httptest.NewServer(page)
	defer server.Close()
	answer, err := http.Head(server.URL + "/any/path")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	equal(t, "HEAD", answer.StatusCode, http.StatusOK)
	if answer.ContentLength < 1000 {
		t.Errorf("HEAD: length %d", answer.ContentLength)
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/?format=xml", nil))
	equal(t, "another format", w.Code, http.StatusBadRequest)
}

// A web page elsewhere whose name its owner points here (DNS rebinding) reads nothing.
func TestHosts(t *testing.T) {
	for _, test := range []struct {
		hosts        []string
		host, origin string
		want         int
	}{
		{nil, "127.0.0.1:8080", "", http.StatusOK},
		{nil, "10.1.2.3", "", http.StatusOK},
		{nil, "[::1]:8080", "", http.StatusOK},
		{nil, "[fe80::1]", "", http.StatusOK},
		{nil, "LOCALHOST.:1", "", http.StatusOK},
		{nil, "x.localhost", "", http.StatusOK},
		{nil, "evil.example:8080", "", http.StatusForbidden},
		{nil, "127.0.0.1.evil.example", "", http.StatusForbidden},
		{nil, "localhost.evil.example", "", http.StatusForbidden},
		{nil, "", "", http.StatusForbidden},
		{[]string{"debug.example.com"}, "Debug.Example.com:99", "", http.StatusOK},
		{[]string{"debug.example.com"}, "x.debug.example.com", "", http.StatusForbidden},
		{[]string{"debug.example.com"}, "localhost", "", http.StatusOK},
		{[]string{"*"}, "evil.example", "http://evil.example", http.StatusOK},
		{nil, "localhost:1", "http://localhost:1", http.StatusOK},
		{nil, "localhost:1", "http://localhost:2", http.StatusForbidden},
		{nil, "127.0.0.1", "https://evil.example", http.StatusForbidden},
		{nil, "127.0.0.1", "null", http.StatusForbidden},
	} {
		page := debugpage.New(&debugpage.Options{Hosts: test.hosts})
		night(t, page.Panel("u"))
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		equal(t, test.host+" "+test.origin, w.Code, test.want)
		equal(t, "shows peers", strings.Contains(w.Body.String(), "data-peer"), test.want == http.StatusOK)
	}
}

// The page's own style and script are let in by their hashes, and nothing on the
// page needs more than that.
func TestContentSecurityPolicy(t *testing.T) {
	page := debugpage.New(nil)
	night(t, page.Panel("u"))
	w := ask(t, page, "")
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin"} {
		equal(t, name, w.Header().Get(name), want)
	}
	policy := w.Header().Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none';") {
		t.Error("policy", policy)
	}
	root, err := html.Parse(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	d, hashed := document{root}, 0
	for _, e := range append(d.all("style", "", ""), d.all("script", "", "")...) {
		if kind, _ := e.attr("type"); kind == "application/json" {
			continue // data, that nothing runs
		}
		sum := sha256.Sum256([]byte(e.FirstChild.Data))
		if !strings.Contains(policy, e.Data+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Error("the policy does not let in the", e.Data)
		}
		hashed++
	}
	equal(t, "styles and scripts", hashed, 2)
	for _, e := range d.all("", "", "") {
		for _, a := range e.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") || a.Key == "src" {
				t.Errorf("<%s %s=%q>", e.Data, a.Key, a.Val)
			}
		}
	}
}

// What assistive technology needs: names for controls, regions and pictures, one
// h1, no heading level left out, unique ids.
func TestStructure(t *testing.T) {
	page := debugpage.New(nil)
	night(t, page.Panel("a"))
	night(t, page.Panel("b"))
	d := parse(t, page, "")
	equal(t, "main", len(d.all("main", "", "")), 1)
	equal(t, "h1", len(d.all("h1", "", "")), 1)
	equal(t, "search", len(d.all("form", "role", "search")), 1)
	lang, _ := d.all("html", "", "")[0].attr("lang")
	equal(t, "lang", lang, "en")
	ids := map[string]bool{}
	for _, e := range d.all("", "id", "") {
		id, _ := e.attr("id")
		if ids[id] {
			t.Error("twice:", id)
		}
		ids[id] = true
	}
	for _, e := range d.all("", "aria-labelledby", "") {
		if id, _ := e.attr("aria-labelledby"); !ids[id] {
			t.Error("labelled by nobody:", id)
		}
	}
	for _, e := range d.all("label", "", "") {
		if id, _ := e.attr("for"); !ids[id] {
			t.Error("label for nobody:", id)
		}
	}
	for _, e := range d.all("svg", "", "") {
		label, _ := e.attr("aria-label")
		if hidden, _ := e.attr("aria-hidden"); hidden != "true" && label == "" {
			t.Error("a picture without words")
		}
	}
	for _, e := range d.all("th", "", "") {
		if _, has := e.attr("scope"); !has {
			t.Error("a header of nothing:", e.text())
		}
	}
}
