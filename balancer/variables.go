package balancer

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"path"
	"strconv"
	"strings"

	"github.com/trunklb/trunk/internal/ascii"
	"github.com/trunklb/trunk/internal/cookie"
)

// A VariableError is a text with an unknown variable in it, or one whose
// dollar sign begins no name.
type VariableError struct {
	// Text is the whole text, Variable the part that was refused.
	Text, Variable string
}

func (e *VariableError) Error() string {
	return fmt.Sprintf("trunk: unknown variable %q in %q (%s)", e.Variable, e.Text, hintVariable)
}

const hintVariable = "write a function for it in Config.Variables"

// scope is what variables are looked up in. request is nil outside HTTP: all
// variables but the client's address are then empty. response is nil before the
// answer.
type scope struct {
	request  *http.Request
	response *http.Response
	client   netip.Addr
}

// lookup returns the value of one variable.
type lookup func(s *scope) string

// text is a text with variables, compiled: its parts are looked up, or
// constant. The zero value is the empty text. Goroutines may share it.
type text []part

type part struct {
	constant string
	variable lookup // nil: constant
	client   bool   // of the client's address, which is known without a request too
}

// compile reads a text in nginx's notation: $name and ${name}. own are the user's
// variables. The error is a *VariableError.
func compile(s string, own map[string]func(*http.Request) string) (text, error) {
	var t text
	for rest := s; rest != ""; {
		before, after, found := strings.Cut(rest, "$")
		if before != "" {
			t = append(t, part{constant: before})
		}
		if !found {
			break
		}
		if after != "" && '1' <= after[0] && after[0] <= '9' {
			// A capture; without a regular expression it is empty.
			rest = after[1:]
			continue
		}
		name, left, ok := cutName(after)
		if !ok {
			return nil, &VariableError{Text: s, Variable: "$" + after}
		}
		p := findVariable(name, own)
		if p.variable == nil {
			return nil, &VariableError{Text: s, Variable: "$" + name}
		}
		t = append(t, p)
		rest = left
	}
	return t, nil
}

// cutName takes a variable's name, with or without braces, from what follows a
// dollar sign.
func cutName(s string) (name, rest string, ok bool) {
	braces := strings.HasPrefix(s, "{")
	if braces {
		s = s[1:]
	}
	n := 0
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	name, rest = s[:n], s[n:]
	if braces {
		if rest, ok = strings.CutPrefix(rest, "}"); !ok {
			return "", "", false
		}
	}
	return name, rest, name != ""
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// eval returns the text with its variables filled in. A text of one part is
// returned without a copy.
func (t text) eval(s *scope) string {
	if len(t) == 1 {
		return t[0].eval(s)
	}
	var b strings.Builder
	for i := range t {
		b.WriteString(t[i].eval(s))
	}
	return b.String()
}

func (p *part) eval(s *scope) string {
	switch {
	case p.variable == nil:
		return p.constant
	case s.request == nil && !p.client:
		return ""
	}
	return p.variable(s)
}

// findVariable returns the variable of a name, in which case does not matter;
// the zero part if there is none.
func findVariable(name string, own map[string]func(*http.Request) string) part {
	for n, f := range own {
		if ascii.EqualFold(n, name) {
			return part{variable: func(s *scope) string { return f(s.request) }}
		}
	}
	name = ascii.ToLower(name)
	if v := clientVariables[name]; v != nil {
		return part{variable: v, client: true}
	}
	if v := variables[name]; v != nil {
		return part{variable: v}
	}
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(name, p.prefix); ok {
			return part{variable: p.make(rest)}
		}
	}
	return part{}
}

// clientVariables are those of nginx's that the client's address alone makes.
var clientVariables = map[string]lookup{
	"remote_addr":        func(s *scope) string { return addrText(s.clientAddr()) },
	"binary_remote_addr": func(s *scope) string { return string(s.clientAddr().AsSlice()) },
}

// variables are the others, as far as a request has them.
var variables = map[string]lookup{
	"host":                      func(s *scope) string { return ascii.ToLower(hostname(s.request)) },
	"uri":                       func(s *scope) string { return normalPath(s.request) },
	"document_uri":              func(s *scope) string { return normalPath(s.request) },
	"request_uri":               func(s *scope) string { return requestURI(s.request) },
	"args":                      func(s *scope) string { return query(s.request) },
	"query_string":              func(s *scope) string { return query(s.request) },
	"is_args":                   func(s *scope) string { return ifNotEmpty(query(s.request), "?") },
	"request_method":            func(s *scope) string { return method(s.request) },
	"request":                   func(s *scope) string { return requestLine(s.request) },
	"server_protocol":           func(s *scope) string { return s.request.Proto },
	"scheme":                    func(s *scope) string { return scheme(s.request) },
	"https":                     func(s *scope) string { return onlyIf(scheme(s.request) == "https", "on") },
	"remote_port":               func(s *scope) string { return remotePort(s.request) },
	"proxy_add_x_forwarded_for": func(s *scope) string { return forwardedFor(s) },
	"remote_user":               func(s *scope) string { user, _, _ := s.request.BasicAuth(); return user },
	"content_type":              func(s *scope) string { return header(s.request, "Content-Type") },
	"content_length":            func(s *scope) string { return contentLength(s.request) },
	"http_host":                 func(s *scope) string { return host(s.request) },
	"http_content_length":       func(s *scope) string { return contentLength(s.request) },
	"http_cookie":               func(s *scope) string { return strings.Join(s.request.Header["Cookie"], "; ") },
}

var prefixes = []struct {
	prefix string
	make   func(name string) lookup
}{
	{"arg_", func(name string) lookup { return func(s *scope) string { return argument(query(s.request), name) } }},
	{"cookie_", cookieNamed},
	{"http_", func(name string) lookup {
		key := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		return func(s *scope) string { return header(s.request, key) }
	}},
	{"upstream_cookie_", func(name string) lookup { return func(s *scope) string { return setCookie(s.response, name) } }},
	{"upstream_http_", func(name string) lookup {
		key := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		return func(s *scope) string { return answerHeader(s.response, key) }
	}},
}

// host returns the host that the request names, with its port if it has one: a
// client's request need not have Host.
func host(r *http.Request) string {
	if r.Host == "" && r.URL != nil {
		return r.URL.Host
	}
	return r.Host
}

// hostname returns host without the port. IPv6 keeps its brackets, as in nginx.
func hostname(r *http.Request) string {
	h := host(r)
	if end := strings.LastIndexByte(h, ']'); end >= 0 {
		return h[:end+1]
	}
	h, _, _ = strings.Cut(h, ":")
	return strings.TrimSuffix(h, ".")
}

// requestURI returns what is in the request line: as it came, for a request
// that a server has read, else as a client will send it.
func requestURI(r *http.Request) string {
	switch {
	case strings.HasPrefix(r.RequestURI, "/"):
		return r.RequestURI
	case r.URL == nil:
		return ""
	}
	return r.URL.RequestURI()
}

func requestLine(r *http.Request) string {
	return method(r) + " " + requestURI(r) + " " + r.Proto
}

// normalPath returns the path decoded, without dot segments and repeated
// slashes, as nginx's $uri has it.
func normalPath(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	p := r.URL.Path
	if p == "" {
		return "/"
	}
	if !strings.Contains(p, "//") && !strings.Contains(p, "/.") {
		return p
	}
	clean := path.Clean(p)
	if clean != "/" && (strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")) {
		clean += "/"
	}
	return clean
}

func query(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	return r.URL.RawQuery
}

func method(r *http.Request) string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// scheme returns how the client came, for a request that a server has read.
func scheme(r *http.Request) string {
	switch {
	case r.TLS != nil:
		return "https"
	case r.RequestURI != "":
		return "http"
	case r.URL == nil:
		return ""
	}
	return ascii.ToLower(r.URL.Scheme)
}

// contentLength returns the Content-Length as it came, or as a client will send it:
// net/http sends a 0 with the methods that usually have a body.
func contentLength(r *http.Request) string {
	switch {
	case r.ContentLength > 0:
		return strconv.FormatInt(r.ContentLength, 10)
	case r.ContentLength < 0, r.Body != nil && r.Body != http.NoBody && r.RequestURI == "":
		return ""
	case r.Header["Content-Length"] != nil:
		return "0"
	case r.RequestURI == "" && (r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch):
		return "0"
	}
	return ""
}

// header returns a header of the request.
func header(r *http.Request, key string) string { return allLines(r.Header, key) }

// allLines returns a header's lines, of which there may be several, as one.
func allLines(h http.Header, key string) string {
	lines := h[key]
	if len(lines) == 1 {
		return lines[0]
	}
	return strings.Join(lines, ", ")
}

// argument returns the first argument of a name, undecoded. The case of the name
// does not matter.
func argument(query, name string) string {
	for query != "" {
		var arg string
		arg, query, _ = strings.Cut(query, "&")
		if k, v, ok := strings.Cut(arg, "="); ok && ascii.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// cookieNamed is $cookie_NAME.
func cookieNamed(name string) lookup {
	return func(s *scope) string { return cookie.Find(s.request.Header["Cookie"], name) }
}

// clientAddr returns the client's address: the one that was given for the
// request, or the one that a server has read it from.
func (s *scope) clientAddr() netip.Addr {
	if s.client.IsValid() {
		return s.client.Unmap()
	}
	return remoteAddr(s.request)
}

// remoteAddr returns the address in Request.RemoteAddr, unmapped and without a
// zone; the zero Addr if there is none.
func remoteAddr(r *http.Request) netip.Addr {
	if r == nil || r.RemoteAddr == "" {
		return netip.Addr{}
	}
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, _ := netip.ParseAddr(r.RemoteAddr)
	return a.Unmap().WithZone("")
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func remotePort(r *http.Request) string {
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return strconv.Itoa(int(ap.Port()))
	}
	return ""
}

func forwardedFor(s *scope) string {
	addr := addrText(s.clientAddr())
	if before := header(s.request, "X-Forwarded-For"); before != "" {
		return before + ", " + addr
	}
	return addr
}

func ifNotEmpty(s, then string) string { return onlyIf(s != "", then) }

func onlyIf(is bool, then string) string {
	if is {
		return then
	}
	return ""
}
