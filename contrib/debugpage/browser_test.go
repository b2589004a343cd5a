//go:build linux

package debugpage_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

// stage is a page with three upstreams that show all there is to see.
func stage(t *testing.T) (url string, all []*story) {
	t.Helper()
	page := debugpage.New(nil)
	backend := night(t, page.Panel("backend"))
	backend.picks(1, "10.0.0.1:8080")

	api := newStory(t, page.Panel("api"), leastconn.New(),
		peer.Server{Addr: "10.0.1.1:9000", Weight: 3, MaxConns: 4}, peer.Server{Addr: "10.0.1.2:9000", Weight: 2},
		peer.Server{Addr: "10.0.1.3:9000", Drain: true}, peer.Server{Addr: "10.0.1.4:9000", Down: true},
		peer.Server{Addr: "10.0.2.1:9000", Backup: true})
	var held []*peer.Request
	for n := range 90 {
		r := api.begin(&peer.Request{})
		if api.get(r) != "" {
			held = append(held, r)
		}
		for ; len(held) > 6+n/8%6; held = held[1:] {
			api.free(held[0], peer.OK)
		}
		api.now += 200 * time.Millisecond
	}

	odd := newStory(t, page.Panel(hostile[0]), hash.New("$uri"), peer.Server{Addr: hostile[1]}, peer.Server{Addr: hostile[3]},
		peer.Server{Addr: hostile[12]}, peer.Server{Addr: hostile[14]}, peer.Server{Addr: hostile[15]}, peer.Server{Addr: hostile[16]})
	for _, key := range hostile {
		r := odd.begin(&peer.Request{Key: key})
		odd.get(r)
		odd.free(r, peer.OK)
	}
	odd.picks(6, hostile[1])

	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	return server.URL + "/debug/upstreams/", []*story{backend, api, odd}
}

func TestInTheBrowser(t *testing.T) {
	b := newBrowser(t)
	for _, tt := range []struct {
		name string
		test func(*testing.T, *browser)
	}{
		{"numbers", numbersInTheBrowser},
		{"by keyboard", byKeyboard},
		{"refresh, and search as one types", refreshAndSearch},
		{"sizes and colours", sizesAndColours},
		{"by pointer", byPointer},
		{"without JavaScript", withoutJavaScript},
		{"picture", picture},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.t, b.complaints = t, nil
			tt.test(t, b)
			b.quiet()
		})
	}
}

// Numbers in the DOM, after the script has run, are the snapshot's.
func numbersInTheBrowser(t *testing.T, b *browser) {
	url, stories := stage(t)
	b.look(1280, "light")
	b.open(url)
	var dom [][]map[string]string
	b.eval(`[...document.querySelectorAll("section[data-upstream]")].map(s => [...s.querySelectorAll("tr[data-peer]")].map(r =>
		Object.fromEntries([...r.querySelectorAll("[data-field]")].map(f =>
			[f.dataset.field, f.matches(".number, span") && f.querySelector("data") ? f.querySelector("data").value : f.innerText.trim()]))))`, &dom)
	for i, s := range stories {
		peers := s.Snapshot().Peers
		equal(t, "rows", len(dom[i]), len(peers))
		for n, p := range peers {
			for field, want := range map[string]any{"cw": p.CurrentWeight, "ew": p.EffectiveWeight, "weight": p.Server.Weight,
				"conns": p.Conns, "fails": p.Fails, "gets": p.Gets, "failed": p.Failed} {
				equal(t, fmt.Sprint(i, n, field), dom[i][n][field], fmt.Sprint(want))
			}
		}
	}
	equal(t, "state of the heavy peer", dom[0][0]["state"], "recovering")
	equal(t, "hostile name", dom[2][0]["addr"], hostile[1])
}

func byKeyboard(t *testing.T, b *browser) {
	url, _ := stage(t)
	b.look(1280, "dark")
	b.open(url + "?upstream=backend")
	var stops []string
	for range 11 {
		b.key("Tab")
		var stop struct {
			Name string
			Seen bool
		}
		b.eval(`(e => ({name: e.getAttribute("aria-label") || e.innerText.trim().split(/\s+/).slice(0, 2).join(" ") || e.name,
			seen: getComputedStyle(e).outlineStyle !== "none"}))(document.activeElement)`, &stop)
		stops = append(stops, stop.Name)
		if !stop.Seen {
			t.Error("one does not see the focus on", stop.Name)
		}
	}
	equal(t, "stops", strings.Join(stops, " | "), "Skip to | q | Search | Refresh | Live | all | backend | api | <script>alert(1)</script> | "+
		"Picks: arrow keys move through them | 22:13:52.400 \u2192")
	var at string
	const output = `document.querySelector(".at").textContent`
	b.eval(`document.querySelector(".plots").focus()`, nil)
	var now string
	b.eval(`document.querySelector(".reading").textContent`, &now)
	for _, press := range []struct{ key, want string }{{"Home", "pick 1,"}, {"ArrowRight", "pick 2,"}, {"ArrowLeft", "pick 1,"}, {"End", "now"}} {
		b.key(press.key)
		if b.eval(output, &at); !strings.Contains(at, press.want) {
			t.Errorf("%s: %q, want %q", press.key, at, press.want)
		}
	}
	b.key("Home")
	var reading string
	b.eval(`document.querySelector(".reading").textContent`, &reading)
	equal(t, "reading", reading, "cw \u22121 · ew 10 of 10 · taken")
	b.shoot("cursor", 0)
	b.key("Escape")
	b.eval(output, &at)
	equal(t, "after Escape", at, "")
	b.eval(`document.querySelector(".reading").textContent`, &reading)
	equal(t, "reading after Escape", reading, now)
}

func byPointer(t *testing.T, b *browser) {
	url, _ := stage(t)
	b.look(1280, "light")
	b.open(url + "?upstream=backend")
	var box struct{ X, Y, Width float64 }
	b.eval(`document.querySelector(".lines").getBoundingClientRect().toJSON()`, &box)
	for _, to := range []struct {
		x  float64
		is string
	}{{.001, "startsWith('pick 1,')"}, {.999, "endsWith('now')"}, {-.2, "length === 0"}} {
		b.call("Input.dispatchMouseEvent", params{"type": "mouseMoved", "x": box.X + to.x*box.Width, "y": box.Y + 10}, nil)
		b.wait(`document.querySelector(".at").textContent.` + to.is)
	}
}

func refreshAndSearch(t *testing.T, b *browser) {
	url, stories := stage(t)
	b.open(url)
	const gets = `document.querySelector("tr[data-peer='10.0.0.2:8080'] [data-field=gets] data").value`
	var before string
	b.eval(gets, &before)
	b.eval(`document.querySelector(".decisions details").open = false; document.querySelector(".decisions summary").focus()`, nil)
	stories[0].picks(22, "")
	want := fmt.Sprint(stories[0].Snapshot().Peers[1].Gets)
	if want == before {
		t.Fatal("nothing to see")
	}
	b.eval(`document.querySelector("#refresh").click()`, nil)
	b.wait(gets + ` === "` + want + `"`)
	b.wait(`document.querySelector("#status").textContent === "Refreshed"`)

	b.eval(`document.querySelector("#live").click()`, nil)
	stories[0].picks(22, "")
	b.wait(gets + ` === "` + fmt.Sprint(stories[0].Snapshot().Peers[1].Gets) + `"`)
	b.eval(`document.querySelector("#live").click()`, nil)

	b.eval(`document.querySelector("#q").focus()`, nil)
	b.call("Input.insertText", params{"text": "10.0.0.2"}, nil)
	b.wait(`document.querySelectorAll("tr[data-peer]").length === 1`)
	var focus, address string
	b.eval(`document.activeElement.id`, &focus)
	equal(t, "focus", focus, "q")
	b.eval(`location.search`, &address)
	equal(t, "address", address, "?q=10.0.0.2")
}

// A phone does not scroll sideways, and all text is told from its ground: 4.5 to 1, as
// WCAG AA wants.
func sizesAndColours(t *testing.T, b *browser) {
	url, _ := stage(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{320, 390, 768, 1280} {
			b.look(width, scheme)
			b.open(url)
			var wide int
			b.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &wide)
			equal(t, fmt.Sprint("too wide for ", width), wide, 0)
			var dim []string
			b.eval(contrast, &dim)
			if len(dim) > 0 {
				t.Errorf("%s, %d: %s", scheme, width, strings.Join(dim, "\n"))
			}
			b.shoot(fmt.Sprint(scheme, "-", width), 0)
		}
	}
}

// contrast lists the texts that are too dim.
const contrast = `(() => {
	const luminance = c => {
		const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const parts = s => s.match(/[\d.]+/g).map(Number);
	const ground = e => {
		for (; e; e = e.parentElement) {
			const c = parts(getComputedStyle(e).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c.slice(0, 3);
		}
		return [255, 255, 255];
	};
	const dim = [];
	for (const e of document.querySelectorAll("body *")) {
		if (e.matches("script, style") || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
		const s = getComputedStyle(e), a = luminance(parts(e.namespaceURI.endsWith("svg") ? s.fill : s.color).slice(0, 3)), b = luminance(ground(e));
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < 4.5) dim.push(ratio.toFixed(2) + " " + e.className + " " + e.textContent.trim().slice(0, 30));
	}
	return [...new Set(dim)];
})()`

// Without its script the page has everything but the script's own controls.
func withoutJavaScript(t *testing.T, b *browser) {
	url, _ := stage(t)
	b.call("Emulation.setScriptExecutionDisabled", params{"value": true}, nil)
	b.call("Page.navigate", params{"url": url + "?q=10.0.0"}, nil)
	for m := b.receive(); m.Method != "Page.loadEventFired"; m = b.receive() {
	}
	var got struct{ Rows, Plots, Live int }
	b.eval(`({rows: document.querySelectorAll("tr[data-peer]").length, plots: document.querySelectorAll(".plot").length,
		live: document.querySelector("#live").offsetWidth})`, &got)
	equal(t, "rows", got.Rows, 2)
	equal(t, "plots", got.Plots, 2)
	equal(t, "the Live button's width", got.Live, 0)
}

// picture makes the one in docs/img: a heavy peer has failed twice, twice.
func picture(t *testing.T, b *browser) {
	page := debugpage.New(nil)
	s := newStory(t, page.Panel("backend"), nil, peer.Server{Addr: "10.0.0.1:8080", Weight: 10, MaxFails: 2}, peer.Server{Addr: "10.0.0.2:8080"})
	newStory(t, page.Panel("api"), leastconn.New(), peer.Server{Addr: "10.0.1.1:9000"})
	for _, picks := range []int{72, 115} {
		s.picks(picks, "")
		for heavy := s.Snapshot().Peers[0]; heavy.CurrentWeight != 0 || heavy.Fails != 0; heavy = s.Snapshot().Peers[0] {
			s.picks(1, "")
		}
		s.picks(2, "10.0.0.1:8080")
	}
	s.picks(24, "")
	equal(t, "the heavy peer is out", s.Snapshot().Peers[0].Out, true)
	server := httptest.NewServer(page)
	defer server.Close()
	b.call("Emulation.setScriptExecutionDisabled", params{"value": false}, nil)
	b.look(1180, "light")
	b.open(server.URL + "?upstream=backend")
	b.eval(`document.querySelector(".plots").focus(); document.querySelector(".plots").style.outline = "none"`, nil)
	b.key("End")
	for range 9 {
		b.key("ArrowLeft")
	}
	b.shoot("debugpage", 720)
}
