//go:build cgo

package main

/*
#cgo CFLAGS: -O2
#include <stdint.h>
#include <stdlib.h>

// The arithmetic of docs/parity.md, sections 2 to 6, as plain.go has it.
struct server {
	int64_t cw, ew, weight, checked, accessed, fail_timeout;
	int32_t fails, max_fails, conns, max_conns, down;
};

struct group {
	int lock;
	int32_t n, retry, failing;
	int64_t now, count; // seconds, and requests
	struct server *servers;
};

static struct group *new_group(int32_t n) {
	struct group *g = calloc(1, sizeof *g);
	g->servers = calloc(n, sizeof *g->servers);
	g->n = n;
	return g;
}

static void enter(struct group *g) {
	while (__atomic_exchange_n(&g->lock, 1, __ATOMIC_ACQUIRE))
		;
}

static void leave(struct group *g) { __atomic_store_n(&g->lock, 0, __ATOMIC_RELEASE); }

static int32_t get(struct group *g, int32_t tried) {
	int32_t best = -1;
	int64_t most = INT64_MIN, total = 0;
	enter(g);
	for (int32_t i = 0; i < g->n; i++) {
		struct server *s = &g->servers[i];
		if (s->down || i == tried ||
		    (s->max_fails > 0 && s->fails >= s->max_fails && g->now - s->checked <= s->fail_timeout) ||
		    (s->max_conns > 0 && s->conns >= s->max_conns))
			continue;
		s->cw += s->ew;
		total += s->ew;
		if (s->ew < s->weight)
			s->ew++;
		if (s->cw > most) {
			most = s->cw;
			best = i;
		}
	}
	if (best >= 0) {
		struct server *s = &g->servers[best];
		s->cw -= total;
		s->conns++;
		if (g->now - s->checked > s->fail_timeout)
			s->checked = g->now;
	}
	leave(g);
	return best;
}

static void give_back(struct group *g, int32_t i, int failed) {
	struct server *s = &g->servers[i];
	enter(g);
	s->conns--;
	if (failed) {
		s->fails++;
		s->accessed = s->checked = g->now;
		if (s->max_fails > 0)
			s->ew -= s->weight / s->max_fails;
		if (s->ew < 0)
			s->ew = 0;
	} else if (s->accessed < s->checked) {
		s->fails = 0;
	}
	leave(g);
}

// work is requests one after the other, so that no call from Go is measured.
static void work(struct group *g, int64_t requests) {
	while (requests-- > 0) {
		int failed = 0;
		if (g->failing) {
			g->count++;
			g->now += g->count % 20 == 0;
			failed = g->count % 100 == 0;
		}
		int32_t i = get(g, -1);
		if (g->retry) {
			give_back(g, i, 0);
			i = get(g, i);
		}
		give_back(g, i, failed);
	}
}
*/
import "C"

import (
	"math"
	"runtime"
	"time"
	"unsafe"
)

// clangs is the plain loop once more, in C.
var clangs = []contender{{"C loop", "as the plain loop", newC, true, true, math.MaxInt}}

type cTarget struct{ group *C.struct_group }

func newC(s scenario) (target, error) {
	c := s.course()
	t := &cTarget{C.new_group(C.int32_t(s.n))}
	g := t.group
	runtime.AddCleanup(t, func(g *C.struct_group) {
		C.free(unsafe.Pointer(g.servers))
		C.free(unsafe.Pointer(g))
	}, g)
	g.now = C.int64_t(c.now / time.Second)
	g.retry, g.failing = flag32(c.retry), flag32(c.failing)
	servers := unsafe.Slice(g.servers, s.n)
	for i, w := range s.weights.list(s.n) {
		servers[i].ew, servers[i].weight, servers[i].max_fails = C.int64_t(w), C.int64_t(w), maxFails
		servers[i].fail_timeout = C.int64_t(s.failTimeout() / time.Second)
	}
	bury(s, func() int { return t.pick(0) }, func(i int, failed bool) { C.give_back(g, C.int32_t(i), C.int(flag32(failed))) })
	return t, nil
}

func flag32(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

func (t *cTarget) worker() func(requests int) {
	return func(requests int) {
		C.work(t.group, C.int64_t(requests))
		runtime.KeepAlive(t)
	}
}

func (t *cTarget) pick(int) int  { return int(C.get(t.group, -1)) }
func (t *cTarget) done(_, i int) { C.give_back(t.group, C.int32_t(i), 0) }
