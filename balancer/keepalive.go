package balancer

import (
	"net/http"
	"time"
)

// keepalive says which idle connections to a peer are kept.
type keepalive struct {
	off     bool
	most    int           // 0: as the http.Transport says
	timeout time.Duration // 0: likewise
}

// newKeepalive reads Keepalive and KeepaliveTimeout. The error is a *ConfigError.
func newKeepalive(c *Config) (keepalive, error) {
	refuse := func(field string, value any) (keepalive, error) {
		return keepalive{}, &ConfigError{Server: -1, Field: field, Value: value, Reason: "must be at least 0, or NoKeepalive"}
	}
	switch {
	case c.Keepalive < NoKeepalive:
		return refuse("Keepalive", c.Keepalive)
	case c.KeepaliveTimeout < NoKeepalive:
		return refuse("KeepaliveTimeout", c.KeepaliveTimeout)
	case c.Keepalive == NoKeepalive || c.KeepaliveTimeout == NoKeepalive:
		return keepalive{off: true}, nil
	}
	return keepalive{most: c.Keepalive, timeout: c.KeepaliveTimeout}, nil
}

// set configures the transport of one peer.
func (k *keepalive) set(t *http.Transport) {
	t.IdleConnTimeout = cmpDuration(k.timeout, t.IdleConnTimeout, defaultIdle)
	switch {
	case k.off:
		// Not DisableKeepAlives, which adds Connection: close to the caller's requests.
		// To HTTP/2 a number of idle connections means nothing; only time does.
		t.MaxIdleConnsPerHost, t.IdleConnTimeout = -1, idleUnwanted
	case k.most > 0:
		t.MaxIdleConnsPerHost = k.most
	case t.MaxIdleConnsPerHost == 0:
		t.MaxIdleConnsPerHost = idlePerPeer
	}
	if t.MaxIdleConns > 0 && k.most > 0 {
		t.MaxIdleConns = max(t.MaxIdleConns, k.most)
	}
}
