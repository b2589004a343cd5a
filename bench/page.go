package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// page is the generated parts of docs/performance.md, each between two markers:
//
//	<!-- bench:name -->
//	<!-- /bench:name -->
type page struct{ parts []part }

type part struct{ name, text string }

func (p *page) add(name, text string) { p.parts = append(p.parts, part{name, text}) }

// String returns all parts, one after the other.
func (p *page) String() string {
	var b strings.Builder
	for _, part := range p.parts {
		fmt.Fprintf(&b, "## %s\n\n%s\n", part.name, part.text)
	}
	return b.String()
}

// write puts the parts between their markers in a file that has them all.
func (p *page) write(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page := string(text)
	for _, part := range p.parts {
		open, end := "<!-- bench:"+part.name+" -->\n", "<!-- /bench:"+part.name+" -->"
		head, rest, found := strings.Cut(page, open)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			return fmt.Errorf("%s has no place for %q", path, part.name)
		}
		page = head + open + part.text + end + tail
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

// table makes a markdown table.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	row := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	row(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	row(rule)
	for _, r := range rows {
		row(r)
	}
	return b.String()
}

// figure writes a ratio with two significant digits.
func figure(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.1f", v)
	case v >= .1:
		return fmt.Sprintf("%.2f", v)
	case v >= .01:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func machine() string {
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Join(strings.Fields(string(text))[:2], ", ")
	}
	cpu := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name"); ok {
			first, _, _ := strings.Cut(rest, "\n")
			cpu = strings.TrimLeft(first, "\t :")
		}
	}
	return fmt.Sprintf("%s, %s/%s, %d CPUs (%s); load before the run, over 1 and 5 minutes: %s.\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu, load)
}
