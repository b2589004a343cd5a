// Fleet shows why many clients of the same backends should set RandomStart. Fifty
// fresh processes, started together by a deployment, all begin with the first
// backend, and go on in step: each is fair, and together they are a wave. With a
// random start in the cycle every client is as fair as before, and the wave is gone.
//
//	go run ./examples/fleet [picture.svg]
package main

import (
	"fmt"
	"io"
	"os"
)

//go:generate go run . ../../docs/img/fleet.svg

func main() {
	path := "fleet.svg"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := run(os.Stdout, path); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, path string) error {
	together, err := simulate(false)
	if err != nil {
		return err
	}
	apart, err := simulate(true)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d fresh clients, %d requests each, in step. How many ask a backend in the first steps:\n", clients, steps)
	for _, of := range []struct {
		title string
		load  load
	}{{"as nginx starts", together}, {"RandomStart", apart}} {
		fmt.Fprintf(out, "\n%-22s", of.title)
		for s := range cycle {
			fmt.Fprintf(out, "%4d.", s+1)
		}
		fmt.Fprintf(out, "  of all %d\n", clients*steps)
		for b, server := range backends {
			fmt.Fprintf(out, "  %s weight=%d, fair %-3d", server.Addr, max(1, server.Weight), fair(b))
			for s := range cycle {
				fmt.Fprintf(out, "%5d", of.load[s][b])
			}
			fmt.Fprintf(out, "%8d\n", of.load.total(b))
		}
	}
	fmt.Fprintf(out, "\nAt most %d clients at once on one backend as nginx starts; %d with RandomStart.\n", together.most(), apart.most())
	if err := os.WriteFile(path, []byte(draw(together, apart)), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe picture: %s\n", path)
	return nil
}
