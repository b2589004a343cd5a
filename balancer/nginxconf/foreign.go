package nginxconf

import (
	"strings"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/conflex"
	"github.com/trunklb/trunk/peer"
)

// A foreignThing is a directive or parameter of another module, or of nginx's
// commercial version: what it does, and what to use instead.
type foreignThing struct {
	class   Class
	instead string
}

const (
	insteadCheck = "active checks: trunk judges peers by real requests (max_fails, fail_timeout, Retry.Counts); who wants probes too takes a peer out with Down through Update"
	insteadLua   = "Lua chooses the peer: write the rule as a peer.Method, or as hash over a variable of your own (Config.Variables)"
	insteadList  = "the servers come from a registry: give the list to New, and Update it when the registry changes"
)

// foreignDirectives are other modules' directives in upstream blocks.
var foreignDirectives = map[string]foreignThing{
	"queue":                      {ClassHarmless, "requests wait for a free peer: bound them in front of the client with a semaphore, and set max_conns"},
	"ntlm":                       {ClassHarmless, "NTLM needs a connection for itself: use the client's own transport for such a server"},
	"health_check":               {ClassHarmless, insteadCheck},
	"slow_start":                 {ClassHarmless, "the remedy Policy.SlowStart"},
	"bind_conn":                  {ClassHarmless, "a connection for each client: use the client's own transport"},
	"bind_connection":            {ClassHarmless, "a connection for each client: use the client's own transport"},
	"keepalive_upstream_timeout": {ClassHarmless, "use keepalive_timeout"},
	"limit_upstream_conn":        {ClassHarmless, "use max_conns of the server lines"},
	"limit_upstream_zone":        {ClassHarmless, "use max_conns of the server lines"},
	"status_zone":                {ClassHarmless, "counters: take a Snapshot of the Upstream"},

	"balancer_by_lua_block":      {ClassChoice, insteadLua},
	"balancer_by_lua_file":       {ClassChoice, insteadLua},
	"balancer_by_lua":            {ClassChoice, insteadLua},
	"fair":                       {ClassChoice, "the fair module takes the least busy peer: use least_conn, or least_time for response times too"},
	"vnswrr":                     {ClassChoice, "a smooth weighted round robin that starts at a random place: leave it out, and set RandomStart"},
	"ewma":                       {ClassChoice, "use least_time header"},
	"peak_ewma":                  {ClassChoice, "use least_time header inflight"},
	"consistent_hash":            {ClassChoice, "use hash KEY consistent; keys land on other servers than before"},
	"chash":                      {ClassChoice, "use hash KEY consistent; keys land on other servers than before"},
	"rendezvous_hash":            {ClassChoice, "use hash KEY consistent; keys land on other servers than before"},
	"bounded_hash":               {ClassChoice, "use hash KEY consistent, and max_conns as the bound"},
	"url_hash":                   {ClassChoice, "use hash $request_uri"},
	"hash_method":                {ClassChoice, "the hash is always crc32, as nginx's own: leave it out"},
	"hash_again":                 {ClassChoice, "hash tries up to 20 times, then round robin: leave it out"},
	"session_sticky":             {ClassChoice, "use sticky cookie NAME; ParseOptions.Convert does it"},
	"session_sticky_hide_cookie": {ClassChoice, "use sticky cookie NAME"},
	"sticky_cookie_insert":       {ClassChoice, "use sticky cookie NAME"},
	"sticky_hide_cookie":         {ClassChoice, "use sticky cookie NAME"},
	"sticky_no_fallback":         {ClassChoice, "nginx's sticky always falls back to the method"},
	"sticky_secret":              {ClassChoice, "sticky.Cookie.Secrets signs the cookie"},
	"sticky_strict":              {ClassChoice, "nginx's sticky always falls back to the method"},
	"jvm_route":                  {ClassChoice, "use sticky route, and route= in the server lines for srun_id; ParseOptions.Convert does it"},
	"response_time":              {ClassChoice, "use least_time"},
	"feedback":                   {ClassChoice, "use least_time"},
	"backup_switch":              {ClassChoice, "backups are asked when no primary peer is available"},

	"state":               {ClassServers, "the servers are in the state file: paste its server lines into the block"},
	"jdomain":             {ClassServers, "the name is looked up again and again: write server NAME resolve, or Update the list"},
	"dynamic_resolve":     {ClassServers, "names are looked up again and again: write resolve in the server lines; ParseOptions.Convert does it"},
	"tcp":                 {ClassServers, "a section of a module for TCP, whose upstreams are not read: write them in stream { }"},
	"resolve":             {ClassServers, "names are looked up again and again: write resolve in the server lines, or Update the list"},
	"dynamic_upstream":    {ClassServers, insteadList},
	"consul":              {ClassServers, insteadList},
	"etcd":                {ClassServers, insteadList},
	"zookeeper":           {ClassServers, insteadList},
	"drizzle_server":      {ClassServers, "a server of another protocol: write a server line, and use Start"},
	"postgres_server":     {ClassServers, "a server of another protocol: write a server line, and use Start"},
	"postgresql_server":   {ClassServers, "a server of another protocol: write a server line, and use Start"},
	"service_discovery":   {ClassServers, insteadList},
	"server_discovery":    {ClassServers, insteadList},
	"upstream_dynamic":    {ClassServers, insteadList},
	"dynamic_state_file":  {ClassServers, "the servers are in the state file: paste its server lines into the block"},
	"use_dynamic_servers": {ClassServers, insteadList},
}

// foreignPrefixes are families of directives.
var foreignPrefixes = []struct {
	prefix string
	thing  foreignThing
}{
	{"check_", foreignThing{ClassHarmless, insteadCheck}},
	{"healthcheck_", foreignThing{ClassHarmless, insteadCheck}},
	{"health_check_", foreignThing{ClassHarmless, insteadCheck}},
	{"drizzle_keepalive", foreignThing{ClassHarmless, "connections of another protocol are the business of its client"}},
	{"postgres_keepalive", foreignThing{ClassHarmless, "connections of another protocol are the business of its client"}},
	{"upsync", foreignThing{ClassServers, insteadList}},
	{"consul_", foreignThing{ClassServers, insteadList}},
	{"nacos_", foreignThing{ClassServers, insteadList}},
	{"etcd_", foreignThing{ClassServers, insteadList}},
	{"dns_", foreignThing{ClassServers, "names are looked up again and again: write resolve in the server lines, or Update the list"}},
	{"vnswrr_", foreignThing{ClassChoice, "a smooth weighted round robin that starts at a random place: leave it out, and set RandomStart"}},
}

func foreignOf(name string) (foreignThing, bool) {
	if name == "check" || name == "healthcheck" {
		return foreignThing{ClassHarmless, insteadCheck}, true
	}
	if t, ok := foreignDirectives[name]; ok {
		return t, true
	}
	for _, f := range foreignPrefixes {
		if strings.HasPrefix(name, f.prefix) {
			return f.thing, true
		}
	}
	return foreignThing{}, false
}

// foreignParameters are other modules' parameters of server lines, with "=" if
// they have a value.
var foreignParameters = map[string]foreignThing{
	"slow_start=":    {ClassHarmless, "the remedy Policy.SlowStart, for all servers of the upstream; ParseOptions.Convert sets it"},
	"check":          {ClassHarmless, insteadCheck},
	"inter=":         {ClassHarmless, insteadCheck},
	"rise=":          {ClassHarmless, insteadCheck},
	"fall=":          {ClassHarmless, insteadCheck},
	"max_queue=":     {ClassHarmless, "requests wait for a free peer: bound them in front of the client, and set max_conns"},
	"protocol=":      {ClassHarmless, "the protocol is the client's business"},
	"tls":            {ClassHarmless, "TLS is the client's business: request https://NAME"},
	"ssl":            {ClassHarmless, "TLS is the client's business: request https://NAME"},
	"id=":            {ClassChoice, "use route= for the peer's id in sticky cookies"},
	"sid=":           {ClassChoice, "use route="},
	"srun_id=":       {ClassChoice, "use route=; ParseOptions.Convert does it"},
	"hash=":          {ClassChoice, "the ring has no place that is set by hand; the server's name decides"},
	"max_retries=":   {ClassChoice, "use Retry.Tries for the whole upstream"},
	"max_busy=":      {ClassChoice, "use max_conns="},
	"addr_resolve":   {ClassServers, "write resolve"},
	"dynamic":        {ClassServers, "write resolve"},
	"service_name=":  {ClassServers, "write resolve service=NAME"},
	"interval=":      {ClassServers, "names with resolve are looked up again by Config.Resolver"},
	"max_ips=":       {ClassServers, "every address of the name is a peer"},
	"port=":          {ClassHarmless, "write the port behind the address"},
	"timeout=":       {ClassHarmless, "use Retry.ConnectTimeout and Retry.ReadTimeout"},
	"reconnect":      {ClassHarmless, "connections are the client's business"},
	"srv_resolve":    {ClassServers, "write resolve service=NAME"},
	"resolve_port=":  {ClassServers, "write resolve service=NAME"},
	"backup_weight=": {ClassChoice, "backups have weight="},
}

// foreignDirective deals with a directive in an upstream block that is not
// nginx's own.
func (p *parser) foreignDirective(d *conflex.Directive) *ParseError {
	name := cstr(d.Name())
	err := p.refuse(d, name, `unknown directive "`+name+`"`, hintUnknown(d))
	t, known := foreignOf(d.Name())
	if !known {
		return err
	}
	if p.opts.Convert {
		switch {
		case name == "jvm_route":
			return p.jvmRoute(d, err)
		case name == "consistent_hash" && len(d.Words) == 2:
			return p.consistentHash(d, t)
		case name == "session_sticky":
			return p.sessionSticky(d)
		case name == "dynamic_resolve":
			return p.dynamicResolve(d)
		}
	}
	if err := p.foreign(d, d.Words, t, err); err != nil {
		return err
	}
	return p.skip(d)
}

// foreignParameter deals with a parameter of a server line that is not nginx's.
func (p *parser) foreignParameter(d *conflex.Directive, s *balancer.Server, word string) *ParseError {
	err := p.invalidParameter(d, word)
	name, value, hasValue := strings.Cut(word, "=")
	if hasValue {
		name += "="
	}
	t, known := foreignParameters[name]
	if !known {
		return err
	}
	if p.opts.Convert {
		switch name {
		case "srun_id=":
			if value != "" && len(value) <= peer.MaxRoute {
				s.Route = value
				return nil
			}
		case "slow_start=":
			return p.slowStart(d, word, value, err)
		}
	}
	return p.foreign(d, []string{word}, t, err)
}

// foreign refuses what is not nginx's own, or passes it over where the caller
// allows that.
func (p *parser) foreign(d *conflex.Directive, words []string, t foreignThing, err *ParseError) *ParseError {
	if t.class == ClassHarmless && p.opts.Lenient || t.class == ClassChoice && p.opts.AllowChoice {
		p.ignore(d.Line, words, t.class, t.instead)
		return nil
	}
	err.Class, err.Hint = t.class, t.instead
	switch t.class {
	case ClassHarmless:
		err.Hint += "; ParseOptions.Lenient passes it over"
	case ClassChoice:
		err.Hint += "; ParseOptions.AllowChoice passes it over"
	}
	return err
}
