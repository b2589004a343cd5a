package recording

import (
	"crypto/md5"
	"encoding/hex"

	"github.com/trunklb/trunk/peer"
)

// redaction replaces the texts of a recording.
type redaction struct {
	f func(what, text string) string // nil: nothing is
	// was is what addresses and sids have become, by what they were made, through all
	// sets.
	was map[string]string
}

// text is what is written of one.
func (r *redaction) text(what, text string) string {
	if r.f == nil || text == "" {
		return text
	}
	text = r.f(what, text)
	if what == "hint" && len(text) > peer.MaxRoute {
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
			what string
			text *text
		}{{"addr", &s.Name}, {"hint", &s.SID}} {
			was := string(*t.text)
			is := r.text(t.what, was)
			if other, known := r.was[t.what+is]; is == "" || known && other != was {
				return &peer.ConfigError{Server: -1, Field: "Redact", Value: is,
					Reason: "must give different addresses, and different sids, something different to be recorded"}
			}
			r.was[t.what+is] = was
			*t.text = text(is)
		}
		s.Server, s.Service = text(r.text("addr", string(s.Server))), text(r.text("addr", string(s.Service)))
	}
	return nil
}
