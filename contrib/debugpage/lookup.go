package debugpage

import (
	"errors"
	"slices"
	"strings"

	"github.com/trunklb/trunk/peer"
)

// mapped is a look-up with its texts replaced, and at most so many addresses added
// and removed. nil of nil.
func mapped(l *peer.Lookup, most int, f func(kind Kind, text string) string) *peer.Lookup {
	if l == nil {
		return nil
	}
	some := func(list []string) []string {
		list = slices.Clone(list[:min(len(list), most)])
		for i := range list {
			list[i] = f(Addr, list[i])
		}
		return list
	}
	c := &peer.Lookup{Host: f(Addr, l.Host), Service: f(Addr, l.Service), Added: some(l.Added), Removed: some(l.Removed)}
	if l.Err != nil {
		c.Err = errors.New(f(Error, l.Err.Error()))
	}
	return c
}

// clipLookup bounds what is kept of a look-up.
func clipLookup(l *peer.Lookup, most int) *peer.Lookup {
	return mapped(l, most, func(_ Kind, text string) string { return strings.Clone(clip(text)) })
}

// lookup returns what may be shown of one.
func (o *Options) lookup(l *peer.Lookup) *peer.Lookup { return mapped(l, o.Peers, o.redacted) }

// lookupText is what a look-up has brought.
func (o *Options) lookupText(l *peer.Lookup) string {
	l = mapped(l, o.Peers, o.shown)
	if l.Err != nil {
		return l.Err.Error()
	}
	var words []string
	for _, a := range l.Added {
		words = append(words, "+"+a)
	}
	for _, a := range l.Removed {
		words = append(words, "\u2212"+a)
	}
	return strings.Join(words, " ")
}

// sameName reports whether what is kept of a look-up is of the same name as another.
func sameName(kept, l *peer.Lookup) bool {
	if kept == nil || l == nil {
		return kept == l
	}
	return kept.Host == clip(l.Host) && kept.Service == clip(l.Service)
}
