// Migrate reads an nginx configuration and says what becomes of its upstreams:
// what each one is in trunk, what works but probably not as intended, and what is
// ignored, with what to do about it.
//
//	go run ./examples/migrate [file]
//
// Without a file it reads a sample. Files that the configuration includes are
// looked for where nginx looks: beside it, or under their absolute path.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
)

//go:embed sample.conf
var sample string

func main() {
	name, text, include := "the sample", sample, includeFunc(nil)
	if len(os.Args) > 1 {
		name = os.Args[1]
		b, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		text, include = string(b), filesBeside(os.Stdout, name)
	}
	if !migrate(os.Stdout, name, text, include) {
		os.Exit(1)
	}
}

type includeFunc = func(string) ([]nginxconf.IncludeFile, error)

// filesBeside finds included files on this machine. One that cannot be read is
// left out and reported: it belongs to the machine that the configuration comes from.
func filesBeside(w io.Writer, name string) includeFunc {
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil
	}
	read := nginxconf.IncludeFS(os.DirFS("/"), strings.TrimPrefix(filepath.ToSlash(dir), "/"))
	reported := map[string]bool{}
	return func(pattern string) ([]nginxconf.IncludeFile, error) {
		files, err := read(pattern)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			if !reported[pattern] {
				fmt.Fprintf(w, "  The included file %s cannot be read here, and is left out.\n", pattern)
			}
			reported[pattern] = true
			return nil, nil
		}
		return files, err
	}
}

// migrate writes the report. It reads strictly first, as nginx would, and once more with
// all that can be let through; what is refused both times is left out of the rest, and
// makes the result false.
func migrate(w io.Writer, name, text string, include includeFunc) bool {
	fmt.Fprintf(w, "Reading %s as nginx would.\n", name)
	_, strict := nginxconf.Parse(text, &nginxconf.ParseOptions{Include: include, All: true})
	parsed, err := nginxconf.Parse(text, &nginxconf.ParseOptions{Include: include, All: true,
		Lenient: true, AllowChoice: true, Convert: true})
	lost := refusals(err)
	allowed := slices.DeleteFunc(refusals(strict), func(s string) bool { return slices.Contains(lost, s) })
	list(w, "nginx without further modules would refuse this; it is converted or ignored below:", allowed)
	list(w, "This cannot be read, and is left out below:", lost)
	fmt.Fprintf(w, "%s.\n", count(len(parsed.Blocks), "upstream"))
	for i := range parsed.Blocks {
		report(w, &parsed.Blocks[i])
	}
	outside(w, parsed)
	return err == nil
}

// refusals are the errors of one reading, each with its hint on a line of its own.
func refusals(err error) (all []string) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		var e *nginxconf.ParseError
		if errors.As(err, &e) {
			text := at(e.File, e.Line) + e.Message
			if e.Class == 0 && e.Hint != "" {
				text += "\n    -> " + e.Hint
			}
			all = append(all, text)
		}
	}
	return all
}

func list(w io.Writer, heading string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(w, heading)
	for _, item := range items {
		fmt.Fprintf(w, "  - %s\n", item)
	}
}

// report says what became of one block.
func report(w io.Writer, b *nginxconf.Block) {
	where := fmt.Sprintf("line %d", b.Line)
	if b.File != "" {
		where = fmt.Sprintf("%s, line %d", b.File, b.Line)
	}
	fmt.Fprintf(w, "\n=== %s (%s)\n\n", b.Config.Name, where)
	for line := range strings.Lines(b.String()) {
		fmt.Fprint(w, "    "+line)
	}
	section(w, "Look at", len(b.Config.Warnings), func(i int) (string, string, string) {
		v := b.Config.Warnings[i]
		return at(v.File, v.Line), v.Message, v.Hint
	})
	section(w, "Converted or ignored", len(b.Ignored), func(i int) (string, string, string) {
		o := b.Ignored[i]
		return at(o.File, o.Line), strings.Join(strings.Fields(strings.Join(o.Words, " ")), " "), o.Instead
	})
	if b.Stream {
		fmt.Fprintln(w, "\n  It is in stream { }: use Start, or DialContext.")
	}
}

// outside lists what was ignored or is warned of outside the upstream blocks.
func outside(w io.Writer, parsed *nginxconf.File) {
	var warnings []balancer.Warning
	for _, v := range parsed.Warnings {
		if v.Upstream == "" {
			warnings = append(warnings, v)
		}
	}
	section(w, "Outside the upstreams, look at", len(warnings), func(i int) (string, string, string) {
		return at(warnings[i].File, warnings[i].Line), warnings[i].Message, warnings[i].Hint
	})
	var list []nginxconf.Ignored
	for _, o := range parsed.Ignored {
		if o.Upstream == "" {
			list = append(list, o)
		}
	}
	section(w, "Outside the upstreams, ignored", len(list), func(i int) (string, string, string) {
		return at(list[i].File, list[i].Line), strings.Join(list[i].Words, " "), list[i].Instead
	})
}

// section writes a heading and its items, each with what to do on a line of its own.
func section(w io.Writer, heading string, n int, item func(int) (where, what, remedy string)) {
	if n == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %s:\n", heading)
	for i := range n {
		where, what, remedy := item(i)
		fmt.Fprintf(w, "  - %s%s\n", where, what)
		if remedy != "" {
			fmt.Fprintf(w, "    -> %s\n", remedy)
		}
	}
}

func at(file string, line int) string {
	switch {
	case line == 0:
		return ""
	case file == "":
		return fmt.Sprintf("line %d: ", line)
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
