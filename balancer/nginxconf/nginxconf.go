// Package nginxconf reads nginx's configuration language into balancer.Configs,
// and writes them as upstream blocks.
//
//	up, err := nginxconf.NewUpstream(ctx, `upstream backend {
//		least_conn;
//		server 10.0.0.1:8080 weight=5;
//		server 10.0.0.2:8080;
//	}`)
//
// [Parse] reads a whole configuration, the retry directives of its locations
// included, and opens nothing. What nginx refuses is refused with nginx's words and
// line ([ParseError]); what has no effect here is listed ([Ignored]).
package nginxconf

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/sticky"
)

// NewUpstream makes an upstream of a text with exactly one upstream block: [Parse],
// strict and without options, and [balancer.New] in one. The error is a *[ParseError]
// or one of balancer.New's. Upstream.Warnings returns nginx's own warnings too; which
// directives had no effect here, such as zone, only Parse reports.
func NewUpstream(ctx context.Context, text string) (*balancer.Upstream, error) {
	f, err := Parse(text, nil)
	if err != nil {
		return nil, err
	}
	if n := len(f.Blocks); n != 1 {
		e := &ParseError{Message: fmt.Sprintf("there are %d upstream blocks, and exactly one is wanted", n),
			Hint: "use Parse for several, and balancer.New for each"}
		if n > 1 {
			e.File, e.Line = f.Blocks[1].File, f.Blocks[1].Line
		}
		return nil, e
	}
	c := f.Blocks[0].Config
	up, err := balancer.New(ctx, c)
	return up, withLine(err, c.Warnings)
}

// withLine gives New's error of a variable the line of the directive that has it.
func withLine(err error, warnings []balancer.Warning) error {
	var unknown *balancer.VariableError
	if !errors.As(err, &unknown) {
		return err
	}
	i := slices.IndexFunc(warnings, func(w balancer.Warning) bool {
		return w.Code == balancer.CodeUnknownVariable && w.Word == unknown.Variable
	})
	if i < 0 {
		return err
	}
	w := warnings[i]
	return &ParseError{File: w.File, Line: w.Line, Word: w.Word, Message: w.Message, Hint: w.Hint, Cause: err, Warnings: warnings}
}

// Parse reads the upstream blocks of a text in nginx's configuration
// language: one block, several, or a whole configuration with http { } and
// stream { }. It is pure: nothing is resolved, opened or started.
//
// By default it gives nginx's verdict (release 1.31.3). What nginx refuses is
// refused with nginx's message, and in nginx's order: nginx executes a
// directive as soon as it has read it, so of two mistakes the upper one counts,
// and a block is checked as a whole at its end. The error is a *[ParseError].
// opts (nil: none) says what may be taken all the same.
//
// Outside the blocks, the proxy_next_upstream and proxy_*_timeout directives of
// the locations that pass to an upstream become its Config.Retry. Of the rest
// only the grammar is read, and whether nginx's own directives are where they
// may be.
//
// Nothing is dropped silently: what could not be taken over is in Ignored,
// with what to use instead; what nginx, or [balancer.Lint], warns of is in Warnings.
func Parse(text string, opts *ParseOptions) (*File, error) {
	if opts == nil {
		opts = &ParseOptions{}
	}
	p := &parser{opts: opts, out: &File{}, zones: map[string]*zone{}, noted: map[string]bool{}}
	if err := p.text(conflex.Parse(text)); err != nil {
		if !opts.All {
			err.Warnings = p.out.Warnings
			return nil, err
		}
		p.refused = append(p.refused, err)
	}
	p.checkLocation()
	return p.out, errors.Join(p.refused...)
}

// ParseOptions say what [Parse] may know and take beside the text. The
// zero value is nginx's strict verdict on the text alone.
type ParseOptions struct {
	// Lenient ignores what nginx itself refuses, but what does not affect peer
	// selection while all is well: directives of other modules such as
	// check, queue, ntlm and slow_start ([ClassHarmless]), and, outside the
	// upstream blocks, directives that nginx does not know or not in that place.
	Lenient bool
	// AllowChoice ignores directives that affect peer selection, such as
	// balancer_by_lua_block or fair ([ClassChoice]): the block falls back to
	// what the rest of it says.
	AllowChoice bool
	// Convert reads the older sticky module's directive as sticky cookie,
	// session_sticky too, jvm_route as sticky route, consistent_hash as
	// hash ... consistent, dynamic_resolve as resolve in the server lines, and
	// slow_start as Policy.SlowStart. A notice says what differs.
	Convert bool
	// All reads past what is refused, as if the directive were not there, so that one
	// reading finds every mistake. The error is then the errors.Join of all
	// *ParseErrors, in order, up to 1000, and the File, of what could be read, comes
	// beside it.
	All bool
	// Include gives the files that an include directive's pattern matches, in
	// order of their names; none if it has wildcards and none matches. nil: an
	// include is an error inside an upstream block, since servers may be in it,
	// and ignored outside. See [IncludeFS].
	Include func(pattern string) ([]IncludeFile, error)
	// Lookup, if set, is asked for the names of the server lines as nginx asks
	// while it reads, and a name without an address is refused. The names stay
	// in the result; balancer.New resolves them. See [balancer.Expand].
	Lookup func(host string) ([]netip.Addr, error)
	// Location names the location whose proxy_* directives become Retry, by
	// its words, such as "/api" or "= /login" or "@fallback". Empty: the one
	// that passes to the upstream, or the first of several with a warning.
	Location string
	// Variables are custom variables beside nginx's. They are known in keys and go
	// into every Config.
	Variables map[string]func(*http.Request) string
}

// An IncludeFile is a file that an include directive names.
type IncludeFile struct {
	// Name is used in messages; Text is what is read.
	Name, Text string
}

// File is what [Parse] found in a text.
type File struct {
	// Blocks are the upstream blocks in the order of the text.
	Blocks []Block
	// Warnings are nginx's, the import's and balancer.Lint's; those of a block are
	// in its Config too. Ignored are the directives and parameters that have no
	// effect here; those of a block are in the Block too.
	Warnings []balancer.Warning
	Ignored  []Ignored
}

// Block is one upstream block.
type Block struct {
	// Config is for balancer.New. Its servers keep the names of the text, and its
	// Warnings are what the block was warned of.
	Config balancer.Config
	// Stream: the block is in stream { }. Use it with Upstream.Start or DialContext.
	Stream bool
	// File and Line say where the block begins. File is empty for the text
	// itself, else the name of an included file.
	File string
	Line int
	// Pass are the words of the directive that passes requests to the upstream, in the
	// location that Config.Retry comes from: fastcgi_pass and the name, say. nil: there
	// is none.
	Pass []string
	// Keepalive, Zone and Resolver are what nginx would have in effect; only
	// Keepalive.Max and Keepalive.Timeout have a meaning here (Config.Keepalive,
	// Config.KeepaliveTimeout). Resolver are the words behind the resolver directive,
	// the block's own or the section's; nil: there is none. Its addresses are not
	// asked: Config.Resolver is.
	Keepalive Keepalive
	Zone      Zone
	Resolver  []string
	// StickyLost is the sticky that a method below it switched off, as nginx
	// has it. nil: none was lost.
	StickyLost sticky.Sticky
	// Ignored are the directives and parameters of this block that have no effect
	// here.
	Ignored []Ignored
}

// Keepalive is what nginx's keepalive directives of a block say.
type Keepalive struct {
	// Max is the number of idle connections of the whole block, per worker
	// process. 0: connections are not kept, and the rest is meaningless.
	Max int
	// Local: connections are not shared with other blocks.
	Local bool
	// Requests is the number of requests, Time the age after which a connection
	// is closed; Timeout is how long it may be idle.
	Requests      int
	Time, Timeout time.Duration
}

// Zone is the shared memory that a zone directive asks for.
type Zone struct {
	// Name is empty if the block has no zone. Size is in bytes.
	Name string
	Size int64
}

// Block returns the block of that name, compared without case as nginx does,
// or nil.
func (f *File) Block(name string) *Block {
	i := slices.IndexFunc(f.Blocks, func(b Block) bool { return equalName(b.Config.Name, name) })
	if i < 0 {
		return nil
	}
	return &f.Blocks[i]
}
