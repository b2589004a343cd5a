package balancer

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/trunklb/trunk/internal/ascii"
)

// turnBack turns the Location of an answer that points to the peer's own address
// or server name back to the logical name, as nginx's proxy_redirect does with
// the name in proxy_pass.
func (x *exchange) turnBack(resp *http.Response) {
	lines := resp.Header["Location"]
	if len(lines) == 0 || !strings.Contains(lines[0], "//") {
		return
	}
	u, err := url.Parse(lines[0])
	if err != nil || u.Host == "" {
		return
	}
	host := u.Host
	if u.Port() == "" {
		port := "80"
		if scheme := u.Scheme; ascii.EqualFold(scheme, "https") || scheme == "" && ascii.EqualFold(x.r.URL.Scheme, "https") {
			port = "443"
		}
		host = net.JoinHostPort(u.Hostname(), port)
	}
	s := x.end.server()
	if !ascii.EqualFold(host, s.Addr) && !ascii.EqualFold(host, s.Name) && !ascii.EqualFold(u.Host, s.Name) {
		return
	}
	u.Scheme, u.Host = x.r.URL.Scheme, x.r.URL.Host
	resp.Header.Set("Location", u.String())
}
