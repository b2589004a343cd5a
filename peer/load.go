package peer

import "sync/atomic"

// load is a peer's conns and fails in one word, with what else decides whether it can
// be had or freed at a glance. Being one word it can be freed without the lock: see
// Upstream.Free. It is changed under the lock but for that.
type load struct{ atomic.Uint64 }

// The parts of the word. conns is the low half.
const (
	oneConn  = 1
	conns    = 1<<32 - 1
	oneFail  = 1 << 32
	mostFail = 1<<28 - 1
	fails    = mostFail << 32
	// out: the peer has failed as often as it may. It is in its fail window, or
	// may be probed.
	out = 1 << 60
	// limited: the peer has max_conns.
	limited = 1 << 61
	// down: or draining.
	down = 1 << 62
	// locked: every free takes the lock, for somebody wants to see it.
	locked = 1 << 63

	// guarded is what makes a peer's eligibility a question.
	guarded = out | limited | down
	// attended is what makes a free more than conns - 1.
	attended = fails | limited | locked
)

func failsOf(w uint64) uint32 { return uint32(w & fails >> 32) }

func (l *load) conns() uint32 { return uint32(l.Load()) }
func (l *load) fails() uint32 { return failsOf(l.Load()) }

// take counts a request in, and returns the word.
func (l *load) take() uint64 { return l.Add(oneConn) }

// free counts a request out.
func (l *load) free() { l.Add(^uint64(oneConn - 1)) }

// failed counts a failure; the count stays at its greatest value. The peer is
// out when it reaches most; 0: never. failed reports whether it is so by this failure.
func (l *load) failed(most uint32) bool {
	if l.fails() < mostFail {
		l.Add(oneFail)
	}
	return most > 0 && l.fails() >= most && l.Or(out)&out == 0
}

// healed clears the failures.
func (l *load) healed() { l.And(^uint64(fails | out)) }

// moved makes every later free take the lock, where it finds the peer's new
// place, and returns the counts, which nobody changes any more.
func (l *load) moved() uint64 { return l.Or(locked) & (fails | conns) }

// freeAlone counts a request out without the lock, if nothing else would
// happen: no failures to clear, no limit that somebody waits for, nobody who
// watches. It reports whether it did.
func (l *load) freeAlone() bool {
	for {
		w := l.Load()
		if w&attended != 0 {
			return false
		}
		if l.CompareAndSwap(w, w-oneConn) {
			return true
		}
	}
}
