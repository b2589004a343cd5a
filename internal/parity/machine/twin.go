package machine

import (
	"reflect"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/engine"
	"github.com/trunklb/trunk/internal/oplog"
	"github.com/trunklb/trunk/peer"
)

// The engines, as values of engine.ScanMost.
const (
	scan   = 1 << 30
	queues = 0
)

// twin is a second product beside the first. The first has the scan, the second
// the queues. There is no model of an update or a policy; here both take part.
type twin struct {
	m            *Machine
	up           *peer.Upstream
	ours, theirs noted // the product's and the twin's
}

// noted is what the hooks of an upstream were called with.
type noted struct {
	events   []peer.Event
	idle     []idle
	recorded []oplog.Operation[*peer.Set, peer.State]
	attached int
}

// idle is what OnIdle was called with.
type idle struct {
	peer.Peer
	attached any
	removed  bool
}

// Start and Record implement oplog.Recorder.
func (l *noted) Start(oplog.Origin[peer.Method, peer.Policy, *peer.Set, peer.State]) error {
	return nil
}
func (l *noted) Record(ops []oplog.Operation[*peer.Set, peer.State]) error {
	for _, op := range ops {
		op.Set, op.Draws, op.Changed = nil, slices.Clone(op.Draws), slices.Clone(op.Changed)
		l.recorded = append(l.recorded, op)
	}
	return nil
}

func (l *noted) any() bool { return len(l.events)+len(l.idle)+len(l.recorded) > 0 }

// NewTwins makes a machine with a twin of the product beside it. It chooses the
// engines for the whole process; CheckTwins and FuzzTwins undo that. Of the
// configuration's Model only Sticky counts.
func NewTwins(t TB, c Config, choose Choose) *Machine {
	m := newMachine(t, c, choose)
	w := &twin{m: m}
	m.beside, m.steps = w, slices.Concat(Steps, twinSteps)
	watched := choose("watched", 0, 3)
	var err error
	engine.ScanMost = scan
	m.product, err = peer.New(c.Servers, c.Method, w.options(m.draws.forProduct, &w.ours, watched))
	require.NoError(t, err)
	engine.ScanMost, engine.MaxSteps = queues, oneOf(choose, "steps", 4, 1, 0)
	w.up, err = peer.New(c.Servers, c.Method, w.options(m.draws.forBeside, &w.theirs, watched))
	require.NoError(t, err)
	return m
}

// options are the machine's, with all hooks or with some. Without those for events and
// records a free may need no lock.
func (w *twin) options(draw func() uint32, l *noted, watched int) *peer.Options {
	o := w.m.options(draw)
	o.Attach = func(peer.Server) any {
		l.attached++
		return l.attached
	}
	o.OnIdle = func(p peer.Peer, attached any, removed bool) { l.idle = append(l.idle, idle{p, attached, removed}) }
	if watched >= 2 {
		o.OnEvent = func(e peer.Event) { l.events = append(l.events, e) }
	}
	if watched == 3 {
		o.Record = l
	}
	return o
}

// setTime: both have the machine's clock.
func (w *twin) setTime() {}

// bring: one upstream may have requests of both kinds.
func (w *twin) bring(r *peer.Request) {
	r.Stream = w.m.choose.chance("stream", 3)
	r.BackupTry = w.m.choose.chance("backup try", 3)
}

func (w *twin) begin(r *request) {
	w.brought(r)
	r.twin.MaxTries = r.product.MaxTries
	require.NoError(w.m.t, w.up.Begin(&r.twin))
}

// brought lets the twin's request bring what the product's does.
func (w *twin) brought(r *request) {
	from, to := &r.product, &r.twin
	to.Key, to.Client, to.Hint = from.Key, from.Client, from.Hint
	to.Stream, to.BackupTry = from.Stream, from.BackupTry
}

func (w *twin) get(r *request) bool {
	return w.got(w.up.Get(&r.twin))
}

// got reports whether a peer was available.
func (w *twin) got(err error) bool {
	if err != nil {
		require.ErrorIs(w.m.t, err, peer.ErrNoLivePeers)
	}
	return err == nil
}

func (w *twin) free(r *request, o peer.Outcome) {
	require.NoError(w.m.t, w.up.Free(&r.twin, o))
}

func (w *twin) event(r *request) {
	require.NoError(w.m.t, progress(w.up, &r.twin, r.connected))
}

func (w *twin) held(r *request) (group, index int, ok bool) {
	p, ok := w.up.Peer(&r.twin)
	if ours, _ := w.m.product.Peer(&r.product); p != ours {
		require.Equal(w.m.t, ours, p, "the peer that is held")
	}
	return p.Group, p.Index, ok
}

func (w *twin) tries(r *request) int { return r.twin.Tries() }

func (w *twin) misuse(r *request) {
	_, held := w.up.Peer(&r.twin)
	w.m.refuses(w.up, &r.twin, held)
}

// agree compares the snapshots, what the hooks were called with since the last time, and
// what the methods keep of each request.
func (w *twin) agree() {
	t := w.m.t
	ours, theirs := w.m.product.Snapshot(), w.up.Snapshot()
	if !slices.Equal(ours.Peers, theirs.Peers) { // require is slow
		require.Equal(t, ours.Peers, theirs.Peers)
	}
	ours.Peers, theirs.Peers = nil, nil
	if !reflect.DeepEqual(ours, theirs) {
		require.Equal(t, ours, theirs)
	}
	if w.ours.any() || w.theirs.any() {
		require.Equal(t, w.ours, w.theirs, "what the hooks were called with")
	}
	w.ours, w.theirs = noted{attached: w.ours.attached}, noted{attached: w.theirs.attached}
	for _, r := range w.m.requests {
		if r.product.Scratch != r.twin.Scratch || r.product.Rule != r.twin.Rule {
			require.Equal(t, r.product.Scratch, r.twin.Scratch)
			require.Equal(t, r.product.Rule, r.twin.Rule)
		}
		require.Equal(t, r.product.Attached(), r.twin.Attached())
	}
}
