package debugpage

// Options bound what a Page keeps and shows. The zero value, and a nil *Options,
// are the defaults; a number below 1 is the default too.
//
// The memory of one panel is at most Picks*Peers*160 bytes for its picks, and
// Events*Peers*160 for events of type NoLivePeers, and a few strings of
// at most 256 bytes for each pick.
type Options struct {
	// Picks is how many picks are kept for the chart. 0: 240.
	Picks int
	// Decisions is how many of them are shown in words. 0: 20.
	Decisions int
	// Events is how many events are kept; repeated NoLivePeers
	// count once. 0: 50.
	Events int
	// Peers is how many peers are kept of one pick. Where an upstream has more,
	// these are the winner, then those that have failed or are full, then the
	// first of the list. 0: 64.
	Peers int
	// Rows is how many peers the table shows, those in trouble first; ?q finds
	// the others. 0: 200.
	Rows int
	// Charted is how many peers the chart shows, in the same way. 0: 8.
	Charted int
	// Hosts are the names by which the page may be asked for, such as
	// "debug.example.com", whatever the port. IP addresses and localhost always may.
	// Any other Host is refused with 403, and so is an Origin that is not the page's
	// own: else any web page could make its own name point here (DNS rebinding), and read
	// this one in the browser of an operator. "*": every Host, for a page behind a
	// proxy that checks it.
	Hosts []string
	// Redact returns what may be shown of a value, of which it gets at most the
	// first 256 bytes. It is called while a page is made, by several goroutines
	// at a time, and also decides what ?q can find. nil: everything is shown.
	Redact func(kind Kind, value string) string
}

// Kind is what a value that Options.Redact sees is.
type Kind string

// The kinds of values.
const (
	Key    Kind = "key"    // what a request's choice was hashed from
	Client Kind = "client" // a client's address
	Hint   Kind = "hint"   // the sid that a request brought
	Addr   Kind = "addr"   // a peer's address, name or service
	Error  Kind = "error"  // why a look-up failed, or how a hook panicked: it may contain any of these
	Label  Kind = "label"  // a server's zone, or the value of a label
	SID    Kind = "sid"    // a peer's session id or route; without a route the MD5 of its address
)

func (o *Options) normalized() Options {
	n := Options{}
	if o != nil {
		n = *o
	}
	for _, f := range []struct {
		field *int
		value int
	}{{&n.Picks, 240}, {&n.Decisions, 20}, {&n.Events, 50}, {&n.Peers, 64}, {&n.Rows, 200}, {&n.Charted, 8}} {
		if *f.field < 1 {
			*f.field = f.value
		}
	}
	if n.Redact == nil {
		n.Redact = func(_ Kind, value string) string { return value }
	}
	return n
}
