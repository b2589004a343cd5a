package nginxconf

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		name  string
		where place
		want  verdict
	}{
		{"server", inHTTP, braces}, {"server", inUpstream, simple}, {"upstream", inHTTPServer, notHere}, {"ip_hash", inStreamUpstream, notHere},
		{"include", inUpstream, simple}, {"proxy_pass", inHTTPServer, notHere}, {"proxy_pass", inStreamServer, simple}, {"fair", inUpstream, unknown},
		{"keepalive_timeout", inHTTP, simple}, {"keepalive_timeout", inUpstream, simple}, {"keepalive", inHTTP, notHere},
	} {
		assert.Equal(t, c.want, command(c.name, c.where), c.name)
	}
	for word, want := range map[string]string{"proxy_pas": "proxy_pass", "lisen": "listen", "porxy_pass": "proxy_pass", "more_set_headers": "", "": ""} {
		assert.Equal(t, want, misspelt(word), word)
	}
}
