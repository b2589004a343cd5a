package nginxconf

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// none: it may not be here.
const none form = 255

func TestDirectives(t *testing.T) {
	for _, c := range []struct {
		name  string
		where place
		known bool
		here  form
	}{
		{"server", inHTTP, true, braces}, {"server", inUpstream, true, simple}, {"upstream", inHTTPServer, true, none}, {"ip_hash", inStreamUpstream, true, none},
		{"include", inUpstream, true, simple}, {"proxy_pass", inHTTPServer, true, none}, {"proxy_pass", inStreamServer, true, simple}, {"fair", inUpstream, false, none},
		{"keepalive_timeout", inHTTP, true, simple}, {"keepalive_timeout", inUpstream, true, simple}, {"keepalive", inHTTP, true, none},
	} {
		found, known := find(c.name, c.where)
		assert.Equal(t, c.known, known, c.name)
		if c.here == none {
			assert.Nil(t, found, c.name)
			continue
		}
		require.NotNil(t, found, c.name)
		assert.Equal(t, c.here, found.form, c.name)
	}
	for word, want := range map[string]string{"proxy_pas": "proxy_pass", "lisen": "listen", "porxy_pass": "proxy_pass", "more_set_headers": "", "": ""} {
		assert.Equal(t, want, misspelt(word), word)
	}
}
