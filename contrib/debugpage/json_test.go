package debugpage_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trunklb/trunk/contrib/debugpage"
	"github.com/trunklb/trunk/peer"
)

// reported is what a reader of the JSON knows of it.
type reported struct {
	Upstreams []struct {
		Name     string
		Snapshot *struct {
			Time    time.Time
			Method  string
			Version int
			Peers   []struct {
				Server          struct{ Addr, Name, Route string }
				SID             string
				CW, EW          int64
				Gets, OK, Fails uint64
			}
		}
		DecisionsSeen uint64 `json:"decisions_seen"`
		Decisions     []struct {
			Seq               uint64
			Time              time.Time
			Key, Client, Hint string
			Winner            int
			Peers             []struct{ Addr string }
			LeftOut           int `json:"peers_left_out"`
		}
		EventsDropped uint64 `json:"events_dropped"`
		Events        []struct {
			Kind  string
			Peer  struct{ Server struct{ Addr string } }
			Times uint64
		}
	}
}

func report(t testing.TB, page http.Handler, query string) (r reported) {
	t.Helper()
	w := ask(t, page, "?format=json"+query)
	equal(t, "type", w.Header().Get("Content-Type"), "application/json")
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJSONIsTheSnapshot(t *testing.T) {
	page := debugpage.New(nil)
	s := night(t, page.Panel("backend"))
	page.Panel("empty")
	var got struct {
		Upstreams []struct {
			Name     string
			Snapshot json.RawMessage
		}
	}
	if err := json.Unmarshal(ask(t, page, "?format=json&upstream=backend").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	equal(t, "upstreams", len(got.Upstreams), 1)
	var indented strings.Builder
	e := json.NewEncoder(&indented)
	e.SetIndent("      ", "  ")
	if err := e.Encode(s.Snapshot()); err != nil {
		t.Fatal(err)
	}
	equal(t, "snapshot", string(got.Upstreams[0].Snapshot), strings.TrimSpace(indented.String()))

	empty := report(t, page, "&upstream=empty").Upstreams[0]
	if empty.Snapshot != nil || empty.Decisions == nil || empty.Events == nil {
		t.Error("an empty panel:", empty)
	}
}

// Every text that peer's types have, also one that they get some day, is one that may
// be told, or is redacted.
func TestRedactKnowsAllTexts(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Redact: func(debugpage.Kind, string) string { return "hidden" }})
	panel := page.Panel("u")
	var d peer.Decision
	var e peer.Event
	var s peer.PeerSnapshot
	d.Peers, e.Decision = make([]peer.Candidate, 1), &peer.Decision{Peers: make([]peer.Candidate, 1)}
	e.Lookup = &peer.Lookup{Added: make([]string, 1), Removed: make([]string, 1), Err: errors.New("secret")}
	for _, v := range []any{&d, &e, &s} {
		fill(reflect.ValueOf(v).Elem(), "")
	}
	panel.Decision(&d)
	panel.Event(e)
	panel.Watch(always{peer.Snapshot{HookPanic: "secret", Peers: []peer.PeerSnapshot{s}}})
	for _, query := range []string{"", "?format=json"} {
		body := ask(t, page, query).Body.String()
		if at := strings.Index(body, "secret"); at >= 0 {
			t.Errorf("%q tells: %s", query, body[max(0, at-80):at+20])
		}
		if !strings.Contains(body, "hidden") {
			t.Errorf("%q shows nothing", query)
		}
	}
}

// fill writes a secret into every text below, but for those that may be told.
func fill(v reflect.Value, field string) {
	if v.Type() == reflect.TypeFor[peer.Labels]() {
		v.Set(reflect.ValueOf(peer.Labels{}.With("label", "secret")))
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if field != "Method" && field != "Detail" && field != "Rule" {
			v.SetString("secret " + field)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), field)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name)
		}
	}
}

// always is a source that never changes.
type always struct{ state peer.Snapshot }

func (a always) Snapshot() peer.Snapshot { return a.state }

// What may not be told is nowhere, in neither form, and cannot be searched for.
func TestRedact(t *testing.T) {
	page := debugpage.New(&debugpage.Options{Redact: func(kind debugpage.Kind, value string) string {
		if kind == debugpage.Addr {
			return "peer " + value[len(value)-1:]
		}
		return "(" + string(kind) + ")"
	}})
	panel := page.Panel("u")
	s := newStory(t, panel, nil, peer.Server{Addr: "secret1", Name: "secret-name1", Route: "secret-route"}, peer.Server{Addr: "secret2"})
	s.get(s.begin(&peer.Request{Key: "secret-key", Hint: "secret-hint"}))
	s.picks(5, "secret1")
	s.picks(1, "secret2")
	panel.Decision(&peer.Decision{Time: time.Unix(0, int64(s.now)), Client: "secret-client", Peers: []peer.Candidate{{Addr: "secret1"}}})
	sid := s.Snapshot().Peers[1].SID
	for _, query := range []string{"", "?format=json"} {
		body := ask(t, page, query).Body.String()
		if strings.Contains(body, "secret") || strings.Contains(body, sid) {
			t.Errorf("%q tells: %s", query, body[max(0, strings.Index(body, "secret")-50):][:100])
		}
	}
	equal(t, "rows that are found", len(parse(t, page, "?q=secret").all("tr", "data-peer", "")), 0)
	d := parse(t, page, "?q=peer+2")
	equal(t, "rows that are found by what is shown", len(d.all("tr", "data-peer", "")), 1)
	equal(t, "plots", len(d.all("div", "class", "plot")), 1)
}
