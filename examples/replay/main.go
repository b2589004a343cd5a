// Replay plays a recording again, of an upstream of trunk's or of nginx's, and says
// of every request why it went where it went.
//
//	go run ./examples/replay [file]
//
// Without a file it plays the story of docs/explain.md, which the library has
// recorded itself. A file may be gzipped, as nginx's recordings are that trunk is
// tested with:
//
//	go run ./examples/replay internal/parity/testdata/traces/least_conn.jsonl.gz
//
// With -record the story is played again, and recorded to the file.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/trunklb/trunk/peer/recording"
)

//go:generate go run . -record night.jsonl

//go:embed night.jsonl
var sample []byte

func main() {
	record := flag.Bool("record", false, "record the story of the night to the file")
	flag.Parse()
	if err := run(os.Stdout, *record, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, record bool, path string) error {
	if record {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := story(f); err != nil {
			return err
		}
		return f.Close()
	}
	if path == "" {
		return replay(out, bytes.NewReader(sample))
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := unzipped(f)
	if err != nil {
		return err
	}
	return replay(out, in)
}

// unzipped reads gzip, if it is that.
func unzipped(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return gzip.NewReader(b)
	}
	return b, nil
}

// replay plays recordings and shows for each request what was decided, and how it
// ended if not well.
func replay(out io.Writer, in io.Reader) error {
	w := bufio.NewWriter(out)
	defer w.Flush()
	name := ""
	result, err := recording.Replay(in, nil, func(s *recording.Step) error {
		if s.Number == 0 || s.Recording != name {
			name = s.Recording
			fmt.Fprintf(w, "=== %s\n", name)
		}
		clock := s.Time.Format("15:04:05")
		switch {
		case s.Decision != nil:
			fmt.Fprintf(w, "%s request %d\n%s\n", clock, s.Request, s.Decision)
		case s.State != "" && s.State != "OK":
			fmt.Fprintf(w, "%s request %d: %s\n", clock, s.Request, s.State)
		case s.Op == "update":
			fmt.Fprintf(w, "%s another set of servers\n", clock)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d gets in %d operations: every pick and every state came out as recorded.\n", result.Gets, result.Operations)
	if result.Cut {
		fmt.Fprintln(w, "The last recording has no end: what was written after its last whole operation is lost.")
	}
	if result.End != "" {
		fmt.Fprintln(w, "The last recording ended early:", result.End)
	}
	return nil
}
