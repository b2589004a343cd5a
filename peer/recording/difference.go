package recording

import (
	"fmt"

	"github.com/trunklb/trunk/peer"
)

// Difference is the first thing that did not come out as it was recorded.
type Difference struct {
	// Recording is its name, Number counts its operations from 0. Op is the
	// operation's name, or "start" for what is so before the first one; Request the
	// id of its request, 0 if it has none.
	Recording string
	Number    int
	Op        string
	Request   int64
	// What differs: "peer" (who was got), "tries", "freed", "number of draws", or
	// a peer's state, as "peer 0/1: ew".
	What string
	// Recorded and Replayed are its two values.
	Recorded, Replayed string
	// Redacted: so is the recording (WriterOptions.Redact), which may be the reason.
	Redacted bool
	// Decision is how the replay decided, if it is a get.
	Decision *peer.Decision
}

// Error is in one line, but for the decision, which follows.
func (d *Difference) Error() string {
	where := d.Op
	if d.Request != 0 {
		where += fmt.Sprintf(", request %d", d.Request)
	}
	text := fmt.Sprintf("trunk: recording %q: operation %d (%s): %s: recorded %s, replayed %s",
		d.Recording, d.Number, where, d.What, d.Recorded, d.Replayed)
	if d.Redacted {
		text += " (the recording is redacted, and what texts have decided cannot be replayed)"
	}
	if d.Decision != nil {
		text += "\n" + d.Decision.String()
	}
	return text
}

// same notes a difference, if it is one and the first.
func (p *player) same(what string, recorded, replayed any) {
	if recorded == replayed || p.differing != nil {
		return
	}
	p.differing = &Difference{Recording: string(p.header.Name), Number: p.number, Op: p.op.Op, Request: p.op.ID,
		What: what, Recorded: fmt.Sprint(recorded), Replayed: fmt.Sprint(replayed), Redacted: p.header.Redacted}
	if p.op.Op == opGet {
		p.differing.Decision = &p.decision
	}
}
