// Night plays the story that trunk began with, on the real library and a fake
// clock. Server a has weight 10 and max_fails=2, b has weight 1. At night a fails
// twice. In the morning all is well; and yet the first requests go to b, and b
// keeps what it got too much. That is nginx's arithmetic, and trunk's default.
// Beside it are the remedies that peer.Policy offers.
//
//	go run ./examples/night [picture.svg]
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

//go:generate go run . ../../docs/img/night.svg

func main() {
	path := "night.svg"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := run(os.Stdout, path); err != nil {
		fmt.Fprintln(os.Stderr, "night:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, path string) error {
	var nights []night
	for _, c := range remedies {
		n, err := play(c)
		if err != nil {
			return err
		}
		nights = append(nights, n)
	}
	trace(out, nights[nginx])
	table(out, nights)
	if err := os.WriteFile(path, []byte(draw(nights)), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe picture: %s\n", path)
	return nil
}

// trace shows the account of both peers, step by step.
func trace(out io.Writer, n night) {
	fmt.Fprint(out, "a: weight=10 max_fails=2; b: weight=1. nginx's way, step by step:\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tpicked\ta: ew\tcw\tb: ew\tcw\t")
	row := func(what string, s step) {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t\n", what, s.picked,
			s.a.EffectiveWeight, s.a.CurrentWeight, s.b.EffectiveWeight, s.b.CurrentWeight)
	}
	for _, s := range n.evening {
		row(s.what, s)
	}
	fmt.Fprintln(w, "seven hours go by\t\t\t\t\t\t")
	for i, s := range n.morning[:12] {
		row(fmt.Sprintf("request %d", i+1), s)
	}
	w.Flush()
}

// table shows what b got under each policy.
func table(out io.Writer, nights []night) {
	fmt.Fprint(out, "\nRequests of the morning that b got:\n\n")
	firsts := []int{11, 20, 50, 100, morningPicks}
	row := func(name, code string, figure func(first int) string) {
		fmt.Fprintf(out, "%-33s %-35s", name, code)
		for _, n := range firsts {
			fmt.Fprintf(out, " %5s", figure(n))
		}
		fmt.Fprintln(out)
	}
	row("", "of the first", func(n int) string { return fmt.Sprint(n) })
	row("by the weights, 10:1", "", func(n int) string { return fmt.Sprintf("%.1f", fair(n)) })
	for _, n := range nights {
		row(n.name, n.code, func(first int) string { return fmt.Sprint(n.toB(first)) })
	}
	fmt.Fprintf(out, "\nthe first requests, nginx:           %s\n", letters(nights[nginx], 44))
	fmt.Fprintf(out, "with Recovery and Forgive:    %s\n", letters(nights[both], 44))
}

// letters are the first requests as a row of letters.
func letters(n night, first int) string {
	var b strings.Builder
	for _, s := range n.morning[:first] {
		if s.picked == "b" {
			b.WriteByte('B')
		} else {
			b.WriteByte('.')
		}
	}
	return b.String()
}
