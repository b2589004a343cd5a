package nginxconf

import (
	"strings"

	"github.com/trunklb/trunk/internal/conflex"
)

// passesOutside reports whether a directive that nginx does not know may be
// outside the upstream blocks. It is another module's, most likely; but what
// looks like an upstream block gone wrong, or like one of nginx's directives
// misspelt, is not let through, nor, on the topmost level of a text that is no
// whole configuration, what no module is known to have.
func (p *parser) passesOutside(d *conflex.Directive) bool {
	name := d.Name()
	switch {
	case !isModuleName(name), d.Block != nil && looksLikeUpstream(d):
		return false
	case p.opts.Lenient:
		return true
	case holdsUpstreams(d.Block):
		return false
	case knownModule(name):
		return true
	}
	if misspelt(name) != "" {
		return false
	}
	_, foreign := foreignOf(name)
	top := p.at.level != nil && p.at.level.parent == nil && !p.http && !p.stream
	return !foreign && !top
}

// foreignOutside ignores a directive outside the upstream blocks.
func (p *parser) foreignOutside(d *conflex.Directive) *ParseError {
	p.define(d)
	if name := d.Name(); !p.noted[name] {
		p.noted[name] = true
		instead := "not nginx's own; it has no influence on the upstreams"
		switch {
		case holdsUpstreams(d.Block):
			instead = "its upstreams are not read: write them in http { } or stream { }"
		case isKnown(name):
			instead = "nginx takes it in another place only"
		}
		if t, ok := foreignOf(name); ok {
			instead = t.instead
		}
		p.ignore(d.Line, d.Words[:1], ClassOutside, instead)
	}
	return p.skip(d)
}

// holdsUpstreams reports whether a block has upstream blocks in it.
func holdsUpstreams(b *conflex.Block) bool {
	if b == nil {
		return false
	}
	for _, d := range b.Directives {
		if d.Name() == "upstream" && d.Block != nil || holdsUpstreams(d.Block) {
			return true
		}
	}
	return false
}

// isModuleName reports whether a word is shaped as the directives of modules are.
func isModuleName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || i > 0 && (c == '_' || c >= '0' && c <= '9') {
			continue
		}
		return false
	}
	return s != ""
}

// looksLikeUpstream reports whether a block is an upstream but for its name.
func looksLikeUpstream(d *conflex.Directive) bool {
	if near(d.Name(), "upstream") || strings.HasPrefix(d.Name(), "upstream") {
		return true
	}
	for _, inner := range d.Block.Directives {
		if inner.Name() == "server" && inner.Block == nil {
			return true
		}
	}
	return false
}

// modulePrefixes begin the directives of modules that configurations often have.
var modulePrefixes = strings.Fields(`lua_ more_ brotli geoip2 vhost_traffic_status js_ otel_ opentelemetry opentracing
	zipkin jaeger modsecurity passenger pagespeed zstd nchan push_stream echo naxsi auth_jwt auth_ldap ldap_ pam_
	headers_more set_by_ encrypted_session rds_ xss_ srcache_ redis2_ drizzle_ postgres_ memc_ array_ form_ upload_
	vod_ rtmp cache_purge fancyindex ajp_ perl_ waf app_protect sysguard_ req_status stream_server_traffic_status
	http_stub testcookie_ websockify ssl_ct security_ acme_ keyval status_ api status dyups_ check_ upstream_ health_check match
	session_log oidc_ saml_ proxy_cache_purge fastcgi_cache_purge scgi_cache_purge uwsgi_cache_purge f4f hls
	num_map dav_ext ssl_fingerprint ja3 http_geoip2 access_by_ content_by_ rewrite_by_ log_by_ header_filter_by_
	body_filter_by_ init_by_ init_worker_by_ exit_worker_by_ ssl_certificate_by_ ssl_session_fetch_by_
	ssl_session_store_by_ server_rewrite_by_ preread_by_ concat trim footer slowfs limit_traffic limit_speed
	substitutions subs_ replace_filter dynamic_ jsonfilter graphite statsd accesskey sorted_querystring image_ eval`)

func knownModule(name string) bool {
	for _, prefix := range modulePrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
