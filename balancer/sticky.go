package balancer

import (
	"context"
	"net/http"
	"time"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/sticky"
)

// binder is sticky at work on HTTP: it makes the hint of a request before each
// get, and hears of the answer. Goroutines share it, and none of it runs in the
// upstream's lock.
//
// A Table's errors end here: a request whose session cannot be looked up goes on
// without a hint.
type binder struct {
	of      peer.Description
	binding *sticky.Binding
	own     map[string]func(*http.Request) string
	texts   map[string]text // those that the binding names beforehand
}

// newBinder makes the binder of a configuration; nil for none. The error is a
// *ConfigError or a *VariableError.
func newBinder(c *Config, clock func() time.Duration) (*binder, error) {
	if c.Sticky == nil {
		return nil, nil
	}
	binding, err := sticky.New(c.Sticky, &sticky.Options{Clock: clock})
	if err != nil {
		return nil, err
	}
	b := &binder{of: sticky.Describe(c.Sticky), binding: binding, own: c.Variables, texts: map[string]text{}}
	name := binding.CookieName()
	for _, s := range binding.Texts() {
		if name != "" && s == "$cookie_"+name {
			// A cookie's name may have characters that a variable's has not.
			b.texts[s] = text{{variable: cookieNamed(name)}}
			continue
		}
		if b.texts[s], err = compile(s, c.Variables); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// values are the variables of a request and, if there is one, its answer.
func (b *binder) values(r *http.Request, resp *http.Response) sticky.Values {
	return func(s string) string {
		t, ok := b.texts[s]
		if !ok {
			var err error
			if t, err = compile(s, b.own); err != nil {
				return ""
			}
		}
		return t.eval(&scope{request: r, response: resp})
	}
}

// hint returns the sid of the peer that the client is bound to, or "".
func (b *binder) hint(r *http.Request) string {
	sid, _ := b.binding.Hint(r.Context(), b.values(r, nil))
	return sid
}

// answered is called with the response header that the caller will get, and adds the
// cookie to it.
func (b *binder) answered(r *http.Request, resp *http.Response, p *peer.Peer) {
	v := b.values(r, resp)
	_ = b.binding.Header(r.Context(), p.SID, v)
	if cookie := b.binding.SetCookie(p.SID, v); cookie != "" {
		if resp.Header == nil {
			resp.Header = http.Header{}
		}
		resp.Header.Add("Set-Cookie", cookie)
	}
}

// freed is called when the held peer's attempt has ended. resp is nil if it did not
// answer.
func (b *binder) freed(r *http.Request, resp *http.Response, p *peer.Peer, o Outcome) {
	if o == OK {
		// Whoever has read an answer to its end cancels its request next.
		_ = b.binding.OK(context.WithoutCancel(r.Context()), p.SID, b.values(r, resp))
	}
}
