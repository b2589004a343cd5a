package main

import (
	"fmt"
	"strings"
	"sync"
)

// ledger is what the servers of a world have received, by request.
type ledger struct {
	mu    sync.Mutex
	marks map[int][]mark
}

// mark is one request that one server has received.
type mark struct {
	by *server
	do *deed
}

func (l *ledger) add(id int, m mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks[id] = append(l.marks[id], m)
}

// of returns what the servers did with a request, in order.
func (l *ledger) of(id int) []mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.marks[id]
}

// refused reports whether a server has not processed the request before.
func (l *ledger) refused(id int, s *server) bool {
	for _, m := range l.of(id) {
		if m.by == s && m.do.unprocessed {
			return true
		}
	}
	return false
}

// processed returns how often a request was received by a server that may have processed it.
func processed(marks []mark) (n int) {
	for _, m := range marks {
		if !m.do.unprocessed {
			n++
		}
	}
	return n
}

func describe(marks []mark) string {
	var texts []string
	for _, m := range marks {
		texts = append(texts, fmt.Sprintf("%s %s", m.by.name, m.do.name))
	}
	if texts == nil {
		return "nothing"
	}
	return strings.Join(texts, ", ")
}
