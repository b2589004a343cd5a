package peer

import (
	"fmt"
	"reflect"
	"strings"
)

// Description is what a method is and what it needs, for all who use it: the
// balancer that makes its strings, a Decision, the printer of an upstream block, a
// recording, a test kit. It is a value; a method around another one changes a copy.
// The zero value is a method that needs nothing, fits every use, and that nginx
// does not have.
type Description struct {
	// Name is what a Decision, a Snapshot and errors call the method. Empty: the
	// words of Directive, or else the Go type.
	Name string
	// Directive is the method's line in an upstream block, word by word: hash,
	// $request_uri, consistent. It must choose as the method does, but for the
	// Remedies. nil: nginx has none; but round robin, which has none either, is
	// RoundRobin.
	Directive []string
	// RoundRobin: what nginx does without any such line.
	RoundRobin bool
	// Remedies are the fields of the method that are set and that the directive has
	// no words for, by their Go names.
	Remedies map[string]any
	// BackupsFirst: nginx takes a server line with backup only above the method's.
	BackupsFirst bool

	// Key is the text, with nginx's variables in it, of the string that the method
	// wants as Request.Key. Empty: none.
	Key string
	// Client: the method wants the client's address, as Request.Client.
	Client bool
	// NotHTTP and NotStream say what to use instead, where the method is not for HTTP
	// requests or not for connections. Empty: it is.
	NotHTTP, NotStream string

	// ByWeight: only the configured weights count. A failure that does not take a peer
	// out changes nothing then.
	ByWeight bool
	// Lint calls warn for what works with these servers, but hardly as intended: a
	// code for programs, the word of the configuration that is meant, what is so,
	// and what to do about it. nil: there is nothing to say.
	Lint func(servers []Server, warn func(code, word, message, hint string))
}

// Describe returns the description of a method with its Name. nil is round robin.
func Describe(m Method) Description {
	switch v := reflect.ValueOf(m); {
	case m == nil:
		return Description{Name: "round robin", RoundRobin: true}
	case v.Kind() == reflect.Pointer && v.IsNil():
		return Description{Name: fmt.Sprintf("nil %T", m)}
	}
	d := m.Describe()
	switch {
	case d.Name != "":
	case d.RoundRobin:
		d.Name = "round robin"
	case d.Directive != nil:
		d.Name = strings.Join(d.Directive, " ")
	default:
		d.Name = fmt.Sprintf("%T", m)
	}
	return d
}
