package debugpage

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// Page is the handler: all panels, one below the other. Goroutines may share it.
type Page struct {
	opt Options

	mu     sync.RWMutex
	panels []*Panel // in the order in which they were made
}

// New makes a page without panels. nil: the default Options.
func New(o *Options) *Page { return &Page{opt: o.normalized()} }

// Panel returns the panel of a name, and makes it if there is none yet. It stays
// until Remove.
func (p *Page) Panel(name string) *Panel {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.panels {
		if known.name == name {
			return known
		}
	}
	panel := newPanel(name, &p.opt)
	p.panels = append(p.panels, panel)
	return panel
}

// Remove takes a panel off the page, for an upstream that is closed. Hooks that
// still point to it do no harm.
func (p *Page) Remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.panels = slices.DeleteFunc(p.panels, func(known *Panel) bool { return known.name == name })
}

// all returns the panels of a name, clipped; "": of every name.
func (p *Page) all(name string) []*Panel {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if name == "" {
		return slices.Clone(p.panels)
	}
	var named []*Panel
	for _, panel := range p.panels {
		if clip(panel.name) == name {
			named = append(named, panel)
		}
	}
	return named
}

// ServeHTTP answers GET and HEAD on whatever path it is mounted, by the names of
// Options.Hosts.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	if !p.opt.invited(r) {
		http.Error(w, "this name is not one of the page's: see Options.Hosts of package debugpage", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page only reads: GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	query := r.URL.Query()
	ask := question{query: clip(query.Get("q")), upstream: clip(query.Get("upstream"))}
	write, kind := p.writeHTML, "text/html; charset=utf-8"
	switch query.Get("format") {
	case "", "html":
	case "json":
		write, kind = p.writeJSON, "application/json"
	default:
		http.Error(w, "format: html or json", http.StatusBadRequest)
		return
	}
	// Into memory first: half a page would look like a whole one.
	var body bytes.Buffer
	if err := write(&body, ask); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	_, _ = body.WriteTo(w) // whoever asked has gone
}

// question is what was asked for.
type question struct {
	query    string // a text in the peers' names; "": all
	upstream string // a panel's name, clipped; "": all
}
