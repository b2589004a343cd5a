package debugpage

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

//go:embed page.css
var style string

//go:embed page.js
var script string

// policy lets the page's own style and script in, by their hashes, and the script
// ask for the page again; nothing else, from nowhere.
var policy = "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) +
	"; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// guard sets the headers that every answer has.
func guard(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
		"Referrer-Policy":              "no-referrer",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"X-Robots-Tag":                 "noindex",
	} {
		h.Set(name, value)
	}
}

// invited reports whether a request's Host, and its Origin if it has one, are the page's.
func (o *Options) invited(r *http.Request) bool {
	if slices.Contains(o.Hosts, "*") {
		return true
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(o.Hosts, func(allowed string) bool { return strings.EqualFold(allowed, host) })
}
