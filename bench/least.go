package main

import (
	"fmt"
	"math"
	"time"

	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
)

// plainLeast is nginx's least_conn as a plain loop, in the way of plain: one pass for the
// least, one for those that are tied for it.
type plainLeast struct {
	plain
	tied []int
}

func (p *plainLeast) get(tried int) int {
	p.mu.Lock()
	now := int64(p.clock() / time.Second)
	peers := p.peers
	tied := p.tied[:0]
	var conns, weight int64
	for i := range peers {
		q := &peers[i]
		if q.down || i == tried ||
			q.fails >= q.maxFails && q.maxFails > 0 && now-q.checked <= int64(q.failTimeout) ||
			q.conns >= q.maxConns && q.maxConns > 0 {
			continue
		}
		switch mine, least := int64(q.conns)*weight, conns*q.weight; {
		case len(tied) == 0 || mine < least:
			tied, conns, weight = append(tied[:0], i), int64(q.conns), q.weight
		case mine == least:
			tied = append(tied, i)
		}
	}
	best := none
	switch len(tied) {
	case 0:
	case 1:
		best = tied[0]
	default:
		bestCW, total := int64(math.MinInt64), int64(0)
		for _, i := range tied {
			q := &peers[i]
			ew := q.ew
			q.cw += ew
			total += ew
			if ew < q.weight {
				q.ew = ew + 1
			}
			if q.cw > bestCW {
				best, bestCW = i, q.cw
			}
		}
		peers[best].cw -= total
	}
	if best != none {
		q := &peers[best]
		q.conns++
		if now-q.checked > int64(q.failTimeout) {
			q.checked = now
		}
	}
	p.mu.Unlock()
	return best
}

func newPlainLeast(s scenario) (target, error) {
	made, err := newPlain(s)
	if err != nil {
		return nil, err
	}
	t := made.(*plainTarget)
	return &plainLeastTarget{&plainLeast{plain{clock: t.plain.clock, peers: t.peers}, make([]int, 0, s.n)}, t.course}, nil
}

type plainLeastTarget struct {
	*plainLeast
	*course
}

func (t *plainLeastTarget) worker() func(requests int) {
	p, c := t.plainLeast, t.course
	return func(requests int) {
		for range requests {
			failed := c.fails()
			i := p.get(none)
			if c.retry {
				p.free(i, false)
				i = p.get(i)
			}
			p.free(i, failed)
		}
	}
}

func (t *plainLeastTarget) pick(int) int  { return t.get(none) }
func (t *plainLeastTarget) done(_, i int) { t.free(i, false) }

func trunkLeastConnScan(s scenario) (target, error) { return newTrunk(s, leastconn.New(), neverQueues) }
func trunkLeastTime(s scenario) (target, error) {
	return newTrunk(s, leasttime.New(leasttime.Header), -1)
}
func trunkLeastTimeScan(s scenario) (target, error) {
	return newTrunk(s, leasttime.New(leasttime.Header), neverQueues)
}

// leasts are the contenders that are compared with another loop, or with one another.
var leasts = []contender{
	{"plain least_conn", "", newPlainLeast, true, true, math.MaxInt},
	{"trunk least_conn, always scan", "", trunkLeastConnScan, true, true, math.MaxInt},
	{"trunk least_time", "", trunkLeastTime, true, true, math.MaxInt},
	{"trunk least_time, always scan", "", trunkLeastTimeScan, true, true, math.MaxInt},
}

// leastTable is least_conn against its own plain loop, and least_time against its scan, with
// no request held: all peers are tied, which is the most work.
func leastTable(t timing) string {
	head := []string{"idle peers"}
	for _, n := range sizes {
		head = append(head, fmt.Sprintf("n = %d", n))
	}
	var rows [][]string
	for _, names := range [][]string{
		{"plain least_conn", "trunk least_conn", "trunk least_conn, always scan", "caddy least_conn"},
		{"trunk least_time, always scan", "trunk least_time"},
	} {
		list := named(names...)
		for _, w := range allWeights {
			made := make([][]string, len(list))
			for i, c := range list {
				made[i] = []string{fmt.Sprintf("%s, %v", c.name, w)}
			}
			nsRow := []string{list[0].name + ", ns"}
			for _, n := range sizes {
				cells := compare(t, scenario{n: n, weights: w}, list)
				for i, cell := range cells {
					made[i] = append(made[i], cell.String())
				}
				nsRow = append(nsRow, fmt.Sprintf("%.0f", cells[0].ns))
			}
			rows = append(rows, nsRow)
			for i := 1; i < len(list); i++ {
				if list[i].weighted || w == equal {
					rows = append(rows, made[i])
				}
			}
		}
	}
	return table(head, rows)
}
