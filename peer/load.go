package peer

import "sync/atomic"

// load is how often a peer was freed and its fails, in one word with what else
// decides at a glance whether it is available or can be freed. What a peer holds is how
// often it was taken, which state.gets counts under the lock, less how often it
// was freed. Being one word it can be freed without the lock: see Upstream.Free.
// Otherwise it is changed under the lock.
type load struct{ atomic.Uint64 }

// The parts of the word. The low half counts the frees, and wraps.
const (
	frees        = 1<<32 - 1
	oneFail      = 1 << 32
	maxFailCount = 1<<28 - 1
	fails        = maxFailCount << 32
	// out: the peer has failed as often as it may. It is in its fail window, or
	// may be probed.
	out = 1 << 60
	// limited: the peer has max_conns.
	limited = 1 << 61
	// down: or draining.
	down = 1 << 62
	// locked: every free takes the lock, because a hook or recorder sees it.
	locked = 1 << 63

	// guarded is what makes a peer's eligibility a question.
	guarded = out | limited | down
	// attended is what makes a free more than a count.
	attended = fails | limited | locked
)

func failsOf(w uint64) uint32 { return uint32(w & fails >> 32) }

func (l *load) fails() uint32 { return failsOf(l.Load()) }

// conns is how many requests hold the peer whose word is w.
func (p *state) conns(w uint64) uint32 { return uint32(p.gets) - uint32(w) }

// freed is the word with one free more.
func freed(w uint64) uint64 { return w&^frees | (w+1)&frees }

// free counts a request out.
func (l *load) free() {
	for w := l.Load(); !l.CompareAndSwap(w, freed(w)); w = l.Load() {
	}
}

// failed counts a failure; the count stays at its largest value. The peer is
// out when it reaches most; 0: never. failed reports whether it is so by this failure.
func (l *load) failed(most uint32) bool {
	if l.fails() < maxFailCount {
		l.Add(oneFail)
	}
	return most > 0 && l.fails() >= most && l.Or(out)&out == 0
}

// recount sets the failures; a peer that is out stays so.
func (l *load) recount(n int) {
	for w := l.Load(); !l.CompareAndSwap(w, w&^fails|uint64(min(n, maxFailCount))<<32); w = l.Load() {
	}
}

// healed clears the failures.
func (l *load) healed() { l.And(^uint64(fails | out)) }

// moved makes every later free take the lock, where it finds the peer's new
// place, and returns the counts, which no longer change.
func (l *load) moved() uint64 { return l.Or(locked) & (fails | out | frees) }

// freeAlone counts a request out without the lock, if nothing else would
// happen: no failures to clear, no limit that a request waits for, no one who
// watches. It reports whether it did.
func (l *load) freeAlone() bool {
	for {
		w := l.Load()
		if w&attended != 0 {
			return false
		}
		if l.CompareAndSwap(w, freed(w)) {
			return true
		}
	}
}
