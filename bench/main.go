// Command bench does the same work on trunk and on what a Go program would take
// instead, by turns in one run, and prints the tables of docs/performance.md.
//
//	cd bench && go run .             # prints them: two to four minutes
//	cd bench && go run . -write      # and puts them and the charts into docs
//	cd bench && go run -tags nocaddy . -quick
//
// All figures are ratios to one plain Go loop, in plain.go. The first build
// compiles caddy, which takes longer than the run; -tags nocaddy leaves it out.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"time"
)

func main() {
	log.SetFlags(0)
	write := flag.Bool("write", false, "put the tables and the charts into ../docs")
	quick := flag.Bool("quick", false, "a tenth of the rounds, to see that all works")
	flag.Parse()
	t := timing{slice: 200 * time.Microsecond, rounds: 120}
	if *quick {
		t.rounds = 12
	}
	if err := run(t, *write); err != nil {
		log.Fatal(err)
	}
}

func run(t timing, write bool) error {
	start := time.Now()
	var p page
	growth := measureGrowth(t)
	p.add("machine", machine())
	p.add("goals", goalsTable(t))
	p.add("growth", growthTables(growth))
	p.add("least", leastTable(t))
	p.add("health", healthTable(t))
	p.add("distinct", distinctTable(t))
	p.add("aside", asideTable(t))
	p.add("parallel", parallelTable(t))
	p.add("picks", picksTable(t))
	p.add("http", httpTable(t))
	p.add("memory", memoryTable())
	fmt.Print(p.String())
	fmt.Fprintf(os.Stderr, "took %v\n", time.Since(start).Round(time.Second))
	if !write {
		return nil
	}
	if err := p.write("../docs/performance.md"); err != nil {
		return err
	}
	for _, c := range charts(t, growth) {
		if err := c.write("../docs/img"); err != nil {
			return err
		}
	}
	return nil
}
