package nginxconf

import (
	"strings"

	"github.com/trunklb/trunk/internal/conflex"
)

// A directive is what is read of a directive of nginx's: where it may be, how it
// ends, how many arguments it takes, and what it does.
type directive struct {
	// names are one or several, separated by white space.
	names string
	where place
	form  form
	// least and most are the numbers of arguments.
	least, most int
	// do is nil for one that has no influence on the upstreams. It is then read for its
	// grammar alone: its arguments are not counted.
	do action
}

// An action executes a directive.
type action func(p *parser, d *conflex.Directive) *ParseError

const many = 1 << 30

// directives is all that is read, and how. Outside the upstream blocks the places are
// as fine as they must be to read a configuration, not as fine as nginx's. Of two
// lines for a name in a place the first holds. It is filled in init, since its actions
// lead back to it.
var directives []directive

func init() {
	directives = []directive{
		// The sections, and the levels in them whose settings are inherited.
		{"http", inMain, braces, 0, 0, opensSection(inHTTP)},
		{"stream", inMain, braces, 0, 0, opensSection(inStream)},
		{"server", inHTTP, braces, 0, 0, opensLevel(inHTTPServer)},
		{"server", inStream, braces, 0, 0, opensLevel(inStreamServer)},
		{"location", inHTTPServer | inLocation, braces, 1, 2, (*parser).location},
		{"if", inHTTPServer, braces, 1, many, opensLevel(inServerIf)},
		{"if", inLocation, braces, 1, many, opensLevel(inLocationIf)},
		{"limit_except", inLocation, braces, 1, many, opensLevel(inLimitExcept)},
		{"include", anywhere, simple, 1, 1, (*parser).include},

		// The upstreams.
		{"upstream", inHTTP | inStream, braces, 1, 1, (*parser).upstream},
		{"server", anyUpstream, simple, 1, many, (*parser).server},
		{"hash", anyUpstream, simple, 1, 2, (*parser).hash},
		{"ip_hash", inUpstream, simple, 0, 0, (*parser).ipHash},
		{"least_conn", anyUpstream, simple, 0, 0, (*parser).leastConn},
		{"least_time", anyUpstream, simple, 1, 2, (*parser).leastTime},
		{"random", anyUpstream, simple, 0, 2, (*parser).random},
		{"sticky", inUpstream, simple, 0, many, (*parser).sticky},
		{"keepalive", inUpstream, simple, 1, 2, (*parser).keepalive},
		{"keepalive_requests", inUpstream, simple, 1, 1, (*parser).keepaliveRequests},
		{"keepalive_time", inUpstream, simple, 1, 1, (*parser).keepaliveTime},
		{"keepalive_timeout", inUpstream, simple, 1, 1, (*parser).keepaliveTimeout},
		{"zone", anyUpstream, simple, 1, 2, (*parser).zone},
		{"resolver", anyUpstream | inHTTP | inStream, simple, 1, many, (*parser).resolver},
		{"resolver_timeout", anyUpstream | inHTTP | inStream, simple, 1, 1, (*parser).resolverTimeout},

		// Where requests go, and what happens when they fail: Config.Retry.
		{families("pass"), inLocation | inLocationIf | inLimitExcept, simple, 1, 1, (*parser).pass},
		{"proxy_pass", inStreamServer, simple, 1, 1, (*parser).pass},
		{families("next_upstream"), anyHTTP, simple, 1, many, (*parser).nextUpstream},
		{families("next_upstream_tries"), anyHTTP, simple, 1, 1, retryNumber(conflex.Number, "invalid number")},
		{families("next_upstream_timeout", "connect_timeout", "send_timeout", "read_timeout"), anyHTTP, simple, 1, 1,
			retryNumber(conflex.Millis, "invalid value")},
		{"proxy_next_upstream", anyStream, simple, 1, 1, (*parser).nextUpstreamStream},
		{"proxy_next_upstream_tries", anyStream, simple, 1, 1, retryNumber(conflex.Number, "invalid number")},
		{"proxy_next_upstream_timeout proxy_connect_timeout proxy_timeout", anyStream, simple, 1, 1,
			retryNumber(conflex.Millis, "invalid value")},

		// Blocks whose lines are not directives.
		{"map geo split_clients", inHTTP | inStream, braces, 0, many, (*parser).table},
		{"charset_map", inHTTP, braces, 0, many, (*parser).table},
		{"types", inHTTP | inHTTPServer | inLocation, braces, 0, many, (*parser).table},

		// The rest, known by name and place.
		{"events mail", inMain, braces, 0, many, nil},
		{mainCommands, inMain, simple, 0, many, nil},
		{eventsCommands, inEvents, simple, 0, many, nil},
		{mailCommands, inMail, simple, 0, many, nil},
		{"server imap pop3 smtp", inMail, braces, 0, many, nil},
		{"listen server_name", inHTTPServer | inStreamServer, simple, 0, many, nil},
		{"set return rewrite break", inHTTPServer | inLocation | inServerIf | inLocationIf, simple, 0, many, nil},
		{"try_files", inHTTPServer | inLocation, simple, 0, many, nil},
		{"alias internal", inLocation, simple, 0, many, nil},
		{httpCommands, anyHTTP, simple, 0, many, nil},
		{streamCommands, anyStream, simple, 0, many, nil},
	}
	for i := range directives {
		for _, name := range strings.Fields(directives[i].names) {
			byName[name] = append(byName[name], &directives[i])
		}
	}
	for name := range byName {
		for n := len(name) - 1; n <= len(name)+1; n++ {
			byLength[n] = append(byLength[n], name)
		}
	}
}

// families are the names of a directive that every protocol has.
func families(names ...string) string {
	var all []string
	for _, family := range []string{"proxy", "fastcgi", "uwsgi", "scgi", "grpc", "memcached"} {
		for _, name := range names {
			all = append(all, family+"_"+name)
		}
	}
	return strings.Join(all, " ")
}

// byName are the directives by their names, and byLength the names by the lengths of
// words that may be meant as them.
var (
	byName   = map[string][]*directive{}
	byLength = map[int][]string{}
)

// A place is a set of the places where a directive may be.
type place uint16

// The places. inHTTP and inStream are the insides of http { } and stream { }.
const (
	inMain place = 1 << iota
	inEvents
	inMail
	inHTTP
	inHTTPServer
	inLocation
	inServerIf
	inLocationIf
	inLimitExcept
	inUpstream
	inStream
	inStreamServer
	inStreamUpstream

	anyHTTP     = inHTTP | inHTTPServer | inLocation | inServerIf | inLocationIf | inLimitExcept
	anyStream   = inStream | inStreamServer
	anyUpstream = inUpstream | inStreamUpstream
	// anywhere is every place.
	anywhere = place(1<<16 - 1)
)

// A form is how a directive ends.
type form uint8

const (
	simple form = iota // with ";"
	braces             // with a block
)

// find looks a directive of nginx's own up in a place. known says that it has its
// place somewhere.
func find(name string, where place) (c *directive, known bool) {
	all := byName[name]
	for _, c := range all {
		if c.where&where != 0 {
			return c, true
		}
	}
	return nil, len(all) > 0
}

// isKnown reports whether a directive of nginx's own has the name.
func isKnown(name string) bool { return len(byName[name]) > 0 }

// misspelt returns the directive of nginx's own that a word is but for one
// letter, or "": of several the first one in the alphabet.
func misspelt(word string) (meant string) {
	for _, name := range byLength[len(word)] {
		if oneEdit(word, name) && (meant == "" || name < meant) {
			meant = name
		}
	}
	return meant
}

// oneEdit reports whether one letter put in, taken out or changed, or two
// neighbours exchanged, make a into b.
func oneEdit(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	switch {
	case len(a) == len(b) && len(a) >= 2 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]:
		return true
	case len(a) == len(b):
		return len(a) > 0 && a[1:] == b[1:]
	case len(a) > len(b):
		return a[1:] == b
	}
	return a == b[1:]
}
