package balancer

// Explain says of which requests Decisions are wanted. The zero value: none, at no
// cost.
type Explain struct {
	// OnDecision is called with each Decision, outside the upstream's lock, by the
	// request's own goroutine, after the choice and before the peer is asked.
	// The Decision is its own to keep. A panic of it is recovered and counted
	// (Snapshot.HookPanics). See also Config.Redact. nil: only WithDecisions counts.
	OnDecision func(*Decision)
	// Share is the part of all choices that is explained, from 0 to 1.
	Share float64
	// Retries explains all second and later choices of a request.
	Retries bool
	// NoLivePeers explains the choices that find no peer.
	NoLivePeers bool
}

func (e *Explain) check() error {
	switch {
	case !(e.Share >= 0 && e.Share <= 1):
		return &ConfigError{Server: -1, Field: "Explain.Share", Value: e.Share, Reason: "must be from 0 to 1"}
	case e.OnDecision == nil && (e.Share > 0 || e.Retries || e.NoLivePeers):
		return &ConfigError{Server: -1, Field: "Explain.OnDecision", Value: "nil", Reason: "must be set when Share, Retries or NoLivePeers is"}
	}
	return nil
}

// wants reports whether the next choice of a request is to be explained, as far as can be
// said before it.
func (e *Explain) wants(again bool, u *Upstream) bool {
	if e.OnDecision == nil {
		return false
	}
	// A share is counted, not drawn: the upstream's source is for the choice.
	every := uint64(1 << 32 * e.Share)
	return again && e.Retries || every > 0 && u.explained.Add(every)%(1<<32) < every
}

// onDecision calls OnDecision.
func (u *Upstream) onDecision(d *Decision) {
	defer u.hooks.Recover()
	if u.redact != nil {
		d = d.Redacted(u.redact)
	}
	u.explain.OnDecision(d)
}
