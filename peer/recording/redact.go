package recording

import (
	"crypto/md5"
	"encoding/hex"

	"github.com/trunklb/trunk/peer"
)

// redaction replaces the texts of a recording.
type redaction struct {
	f func(peer.TextKind, string) string // nil: nothing is
	// was is what addresses and sids have become, by what they were made, through all
	// sets.
	was map[peer.TextKind]map[string]string
}

// text is what is written of one.
func (r *redaction) text(kind peer.TextKind, text string) string {
	if r.f == nil || text == "" {
		return text
	}
	text = r.f(kind, text)
	if kind == peer.TextHint && len(text) > peer.MaxRoute {
		sum := md5.Sum([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	return text
}

// servers replaces the texts of a set. The error is a *peer.ConfigError: a replay
// knows peers by their addresses and sids.
func (r *redaction) servers(list []server) error {
	if r.f == nil {
		return nil
	}
	for i := range list {
		s := &list[i]
		for _, t := range []struct {
			kind peer.TextKind
			text *text
		}{{peer.TextAddr, &s.Name}, {peer.TextHint, &s.SID}} {
			was := string(*t.text)
			is := r.text(t.kind, was)
			if other, known := r.was[t.kind][is]; is == "" || known && other != was {
				return &peer.ConfigError{Server: -1, Field: "Redact", Value: is,
					Reason: "must give different addresses, and different sids, something different to be recorded"}
			}
			r.was[t.kind][is] = was
			*t.text = text(is)
		}
		s.TLSName, s.Host = text(r.text(peer.TextAddr, string(s.TLSName))), text(r.text(peer.TextAddr, string(s.Host)))
		s.Zone = text(r.text(peer.TextLabel, string(s.Zone)))
		labels := map[string]string{}
		for name, value := range s.Labels.All() {
			labels[name] = r.text(peer.TextLabel, value)
		}
		s.Labels = peer.LabelsOf(labels)
		s.Server, s.Service = text(r.text(peer.TextAddr, string(s.Server))), text(r.text(peer.TextAddr, string(s.Service)))
	}
	return nil
}
