package main

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/trunklb/trunk/balancer"
)

// digits are what errors with one cause differ in.
var digits = regexp.MustCompile(`\d+`)

// A verdict is what the judge says of a world.
type verdict struct {
	wire       string
	calls      int
	idempotent int
	served     int
	attempts   int
	most       int // how often a server may have processed one call
	rows       map[*row]int
	counted    map[*row]int // healthy peers that were counted
	faults     []string
	found      map[string]int // faults by name
	shown      map[string]bool
}

// fault notes one. Of those with one name and cause the first is shown.
func (v *verdict) fault(name string, cause any, format string, args ...any) {
	v.found[name]++
	if key := name + digits.ReplaceAllString(fmt.Sprint(cause), ""); !v.shown[key] {
		v.shown[key] = true
		v.faults = append(v.faults, name+": "+fmt.Sprintf(format, args...))
	}
}

// judge compares what callers, events and the snapshot say with what the servers know.
func (w *world) judge() *verdict {
	v := &verdict{wire: w.wire.name, rows: map[*row]int{}, counted: map[*row]int{}, found: map[string]int{}, shown: map[string]bool{}}
	var sum balancer.Snapshot // of the attempts
	failed := map[string]int{}
	for _, c := range w.calls {
		if c == nil {
			continue // the world was ended before
		}
		v.calls++
		if c.idempotent() {
			v.idempotent++
		}
		marks, attempts := w.ledger.of(c.id), c.log.Attempts()
		v.most = max(v.most, processed(marks))
		v.attempts += len(attempts)
		excused := false
		for i := range attempts {
			a := &attempts[i]
			s := w.at(a.Addr)
			switch a.Outcome {
			case balancer.OK:
				sum.Total.OK++
			case balancer.Failed:
				sum.Total.Failed++
				failed[a.Addr]++
				if s != nil && s.healthy {
					r := w.mayCount(s, a)
					if r == nil {
						v.fault("a healthy peer was counted", a.Err, "%v\n\tattempt %d on %s, %v: %v\n\tservers: %s", c, i+1, s.name, a.Kind, a.Err, describe(marks))
					} else {
						v.counted[r]++
						excused = true
					}
				}
			}
		}
		switch r, why := w.classify(c, marks, attempts); {
		case why != "" && excused:
			v.rows[staleConn]++
		case why != "":
			v.fault(why, last(attempts).Err, "%v\n\tstatus %d, error %v, body %q %v\n\tattempts %s\n\tservers: %s", c, c.status, c.err, cutText(c.text), c.bodyErr, w.list(attempts), describe(marks))
		case r != nil:
			v.rows[r]++
		default:
			v.served++
		}
		if n, most := processed(marks), w.executions(); most > 0 && n > most {
			v.fault("a request was processed too often", nil, "%v: %d times, at most %d\n\tattempts %s\n\tservers: %s", c, n, most, w.list(attempts), describe(marks))
		}
		if n := processed(marks); n > 1 && !c.idempotent() && !w.nonIdempotent {
			v.fault("a request that is not idempotent was processed twice", nil, "%v\n\tattempts %s\n\tservers: %s", c, w.list(attempts), describe(marks))
		}
	}
	w.judgeSnapshot(v, sum, failed)
	return v
}

// executions is how often one request may be processed by Retry.Executions' default: Tries,
// and one repeat for each peer. 0: not known, for what changes brings more peers, or nginx's way.
func (w *world) executions() int {
	if w.parity || w.changes {
		return 0
	}
	if w.tries > 0 {
		return w.tries + len(w.servers)
	}
	return 2 * len(w.servers)
}

// classify says why a call has no good answer: a row, or a fault; neither: it has one.
func (w *world) classify(c *call, marks []mark, attempts []balancer.Attempt) (r *row, fault string) {
	end := last(attempts)
	s := w.at(end.Addr)
	sick := s != nil && !s.healthy
	switch {
	case c.endless:
		return nil, "a call without end"
	case c.stopped:
		return callerGone, ""
	case c.wrong > 0 && (c.err != nil || c.status != 200):
		return wrongItself, ""
	case c.bodyErr != nil && w.wire.proto == line && onlySick(marks):
		return connBroke, ""
	case c.bodyErr != nil && w.wire.proto != line && sick:
		return brokeOff, ""
	case c.bodyErr != nil:
		return nil, "a healthy peer's answer broke off"
	case c.err == nil && c.status == 200:
		if c.stop == stays && c.wrong == 0 && c.method != "HEAD" && c.text != answerTo(c.id, c.sum) {
			return nil, "a wrong answer"
		}
		return nil, ""
	case c.err == nil && !sick:
		return nil, "a healthy peer's answer is changed"
	}
	// There was a failure that ended the call, or an answer that is one.
	kind := end.Kind
	if c.err == nil {
		kind = map[int]balancer.Kind{429: balancer.KindHTTP429, 503: balancer.KindHTTP503, 504: balancer.KindHTTP504}[c.status]
	}
	on := w.kinds()
	// Of a server with many deeds another one may have broken the connection before it was known.
	unprocessed := len(marks) > 0 && marks[len(marks)-1].by == s && marks[len(marks)-1].do.unprocessed && (s.healthy || s.always != nil)
	switch {
	case w.off && s != nil && (sick || s.hasDone(cutsIdle, impatient, saysGoodbye, refusesOnce)):
		return notListed, ""
	case c.err == nil && on&kind == 0:
		return ownAnswer, ""
	case c.err != nil && sick && kind != 0 && on&kind == 0:
		return notListed, ""
	case w.tries > 0 && len(attempts) >= w.tries && !c.noLive():
		return outOfTries, ""
	case !c.idempotent() && !w.nonIdempotent && kind&balancer.KindConnect == 0 && !unprocessed && s != nil && (sick || s.hasDone(cutsIdle, impatient)):
		return sentOnce, ""
	case c.body >= withoutGetBody && c.bodyRead && s != nil && !w.remembers(c):
		return bodySent, ""
	case w.stoodStill():
		return stoodStill, ""
	case c.err == nil:
		return nil, "an answer that is to be passed on was not"
	case !c.idempotent():
		return nil, "a request that no peer has processed was lost"
	}
	return nil, "an idempotent request was lost while a peer lives"
}

// last returns the last attempt; the zero one: there is none.
func last(attempts []balancer.Attempt) (a balancer.Attempt) {
	if n := len(attempts); n > 0 {
		a = attempts[n-1]
	}
	return a
}

// remembers reports whether the balancer keeps the call's body.
func (w *world) remembers(c *call) bool {
	return (w.buffer > 0 || w.parity) && c.body != slowBody
}

// onlySick reports whether no healthy server has received the call.
func onlySick(marks []mark) bool {
	for _, m := range marks {
		if m.by.healthy {
			return false
		}
	}
	return true
}

// stoodStill reports whether timeouts mean nothing in this world.
func (w *world) stoodStill() bool { return time.Duration(w.stall.Load()) > patience/2 }

// mayCount returns the row by which a failure of a healthy peer is documented.
func (w *world) mayCount(s *server, a *balancer.Attempt) *row {
	switch {
	case w.parity && a.Kind == balancer.KindError && s.hasDone(cutsIdle):
		return staleConn
	case a.Kind&balancer.KindTimeout != 0 && w.stoodStill():
		return stoodStill
	}
	return nil
}

// judgeSnapshot compares the upstream's own account with that of events and attempts.
func (w *world) judgeSnapshot(v *verdict, sum balancer.Snapshot, failed map[string]int) {
	s := w.up.Snapshot()
	for wait := time.Now(); time.Since(wait) < slow/2 && held(s) > 0; s = w.up.Snapshot() {
		time.Sleep(10 * time.Millisecond)
	}
	if held(s) > 0 {
		v.fault("a peer is held by no request", nil, "%d", held(s))
		return
	}
	t := s.Total
	if t.Gets != t.OK+t.Failed+t.Next+t.Abandoned || s.Requests+s.Retries != t.Gets+s.NoLivePeers {
		v.fault("the snapshot does not add up", nil, "%+v", s)
	}
	if w.wire.proto != line && (t.OK != sum.Total.OK || t.Failed != sum.Total.Failed) {
		v.fault("attempts and snapshot differ", nil, "attempts %+v, snapshot %+v", sum.Total, t)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, peer := range w.servers {
		if n, of := w.failed[peer.addr()], failed[peer.addr()]; peer.healthy && s.EventsDropped == 0 && n > of {
			v.fault("a healthy peer was counted", peer.name, "%s: %d events, %d attempts", peer.name, n, of)
		}
	}
}

// held is how many requests hold a peer.
func held(s balancer.Snapshot) (n int64) {
	for i := range s.Peers {
		n += s.Peers[i].Conns
	}
	return n
}

// leaks compares what is left after the world with what was before it.
func (v *verdict) leaks(w *world, before resources) {
	now := count()
	for wait := time.Now(); time.Since(wait) < 2*slow && (now.goroutines > before.goroutines || now.descriptors > before.descriptors); now = count() {
		time.Sleep(20 * time.Millisecond)
	}
	if now.goroutines > before.goroutines {
		var stacks strings.Builder
		pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		v.fault("goroutines are left", nil, "%d before, %d after\n%s", before.goroutines, now.goroutines, stacks.String())
	}
	if now.descriptors > before.descriptors {
		v.fault("descriptors are left", nil, "%d before, %d after", before.descriptors, now.descriptors)
	}
}

// list writes attempts as text.
func (w *world) list(attempts []balancer.Attempt) string {
	var texts []string
	for i, a := range attempts {
		if i == 10 {
			texts = append(texts, fmt.Sprintf("... (%d)", len(attempts)))
			break
		}
		name := a.Addr
		if s := w.at(a.Addr); s != nil {
			name = s.name
		}
		text := fmt.Sprintf("%s: %v %v %d", name, a.Outcome, a.Kind, a.Status)
		if a.Err != nil && !errors.Is(a.Err, balancer.ErrNoLivePeers) {
			text += " (" + cutText(a.Err.Error()) + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

func cutText(s string) string { return s[:min(len(s), 120)] }
