package debugpage_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/peer"
)

// story is an upstream on a clock of its own, that a panel is told everything of.
type story struct {
	*peer.Upstream
	t     testing.TB
	panel *debugpage.Panel
	now   time.Duration
}

func newStory(t testing.TB, panel *debugpage.Panel, m peer.Method, servers ...peer.Server) *story {
	t.Helper()
	s := &story{t: t, panel: panel, now: 1_700_000_000 * time.Second}
	var err error
	s.Upstream, err = peer.New(servers, m, &peer.Options{Clock: func() time.Duration { return s.now }, OnEvent: panel.Event})
	if err != nil {
		t.Fatal(err)
	}
	panel.Watch(s.Upstream)
	return s
}

// get returns the address of the peer that r gets, "" for none.
func (s *story) get(r *peer.Request) string {
	s.t.Helper()
	var d peer.Decision
	err := s.Explain(r, &d)
	s.panel.Decision(&d)
	if err != nil {
		if !errors.Is(err, peer.ErrNoLivePeers) {
			s.t.Fatal(err)
		}
		return ""
	}
	p, _ := s.Peer(r)
	return p.Server.Addr
}

func (s *story) begin(r *peer.Request) *peer.Request {
	s.t.Helper()
	if err := s.Begin(r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *story) free(r *peer.Request, o peer.Outcome) {
	s.t.Helper()
	if err := s.Free(r, o); err != nil {
		s.t.Fatal(err)
	}
}

// picks makes n requests, one every 200 ms. Those that get failing fail there, and
// go to the next peer.
func (s *story) picks(n int, failing string) {
	s.t.Helper()
	for range n {
		r := s.begin(&peer.Request{})
		for addr := s.get(r); addr != ""; addr = s.get(r) {
			if addr != failing {
				s.free(r, peer.OK)
				break
			}
			s.free(r, peer.Failed)
		}
		s.now += 200 * time.Millisecond
	}
}

// night is the story that began it all, seen while the heavy peer recovers.
func night(t testing.TB, panel *debugpage.Panel) *story {
	t.Helper()
	s := newStory(t, panel, nil, peer.Server{Addr: "10.0.0.1:8080", Weight: 10, MaxFails: 2}, peer.Server{Addr: "10.0.0.2:8080"})
	s.picks(100, "")
	s.picks(2, "10.0.0.1:8080")
	s.picks(60, "")
	return s
}

// ask gets the page.
func ask(t testing.TB, page http.Handler, query string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/debug/upstreams/"+query, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", query, w.Code, w.Body)
	}
	return w
}

// document is the page as a browser parses it.
type document struct{ *html.Node }

func parse(t testing.TB, page http.Handler, query string) document {
	t.Helper()
	root, err := html.Parse(ask(t, page, query).Body)
	if err != nil {
		t.Fatal(err)
	}
	return document{root}
}

// all returns the elements below with a name ("": any) and an attribute ("": any) of a
// value ("": any).
func (d document) all(element, attr, value string) []document {
	var found []document
	for n := range d.Descendants() {
		if n.Type != html.ElementNode || element != "" && n.Data != element {
			continue
		}
		got, has := document{n}.attr(attr)
		if attr == "" || has && (value == "" || got == value) {
			found = append(found, document{n})
		}
	}
	return found
}

func (d document) attr(name string) (string, bool) {
	for _, a := range d.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// text is what stands in it, with single spaces.
func (d document) text() string {
	var b strings.Builder
	for n := range d.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// value is the machine's form of the first number in a field.
func (d document) value(t testing.TB, field string) string {
	t.Helper()
	fields := d.all("", "data-field", field)
	if len(fields) != 1 {
		t.Fatalf("%d fields %s", len(fields), field)
	}
	numbers := fields[0].all("data", "value", "")
	if len(numbers) == 0 {
		t.Fatalf("no number in %s: %s", field, fields[0].text())
	}
	v, _ := numbers[0].attr("value")
	return v
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
