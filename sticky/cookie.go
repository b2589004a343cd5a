package sticky

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trunklb/trunk/internal/ascii"
)

// Cookie is nginx's sticky cookie: the peer's sid is sent to the client in a
// cookie.
type Cookie struct {
	// Name is the cookie's name. It takes no variables.
	Name string
	// Expires is the cookie's life in whole seconds, counted from the answer that sets
	// it. 0: until the client ends. MaxExpires and ExpiresAtOnce are nginx's
	// expires=max and expires=0.
	Expires time.Duration
	// Domain is the attribute of that name, and may contain variables; if it
	// comes out empty the attribute is left out.
	Domain string
	// Path is the attribute of that name. It takes no variables. Empty: left out.
	Path string
	// SameSite is "strict", "lax" or "none", in upper or lower case, or a text with
	// variables; if that comes out empty the attribute is left out, and if it comes
	// out as anything else it is "strict".
	SameSite string
	// HTTPOnly and Secure add the attributes of these names.
	HTTPOnly, Secure bool
	// Secrets sign the sid, so that a client cannot make up a cookie and choose
	// its server. Not nginx's. None: the sid is not signed, as in nginx.
	//
	// The first secret signs, and all of them are accepted: to change it, put
	// the new one first in every process, and take the old one out when its
	// cookies have expired. Each has at least MinSecret bytes, from a
	// random source. The processes that serve the same clients need the same ones.
	//
	// The value is then base64url, without padding, of the first 16 bytes of
	// HMAC-SHA256(secret, "trunk sticky cookie\0" Name "\0" sid), and of the sid
	// behind them: at most 64 characters A-Z a-z 0-9 - _. A client can still
	// come back with any cookie that it was once given.
	Secrets [][]byte
}

// Lives of a cookie as Cookie.Expires that are not a time.
const (
	// MaxExpires is nginx's expires=max: the end of the year 2037.
	MaxExpires time.Duration = -1
	// ExpiresAtOnce is nginx's expires=0: the client forgets the cookie.
	ExpiresAtOnce time.Duration = -2
)

// MinSecret is the least length of a secret in Cookie.Secrets, in bytes.
const MinSecret = 16

// Expires of that many seconds or more is nginx's max (the time of its maximum
// since the epoch); that date is the same whatever the clock shows.
const (
	maxLife    = 2145916555 * time.Second
	maxExpires = "Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000"
)

// cookie is a Cookie that has been validated.
type cookie struct{ Cookie }

func (c Cookie) bind(o *Options) (*Binding, error) {
	switch {
	case c.Name == "":
		return nil, refuse("Name", `""`, "a cookie needs a name")
	case hasControl(c.Name):
		return nil, refuse("Name", strconv.Quote(c.Name), "must not contain control characters")
	case hasControl(c.Path):
		return nil, refuse("Path", strconv.Quote(c.Path), "must not contain control characters")
	case hasControl(c.Domain):
		return nil, refuse("Domain", strconv.Quote(c.Domain), "must not contain control characters")
	case c.Expires < ExpiresAtOnce || c.Expires > 0 && c.Expires%time.Second != 0:
		return nil, refuse("Expires", c.Expires, "must be whole seconds, MaxExpires or ExpiresAtOnce")
	case c.SameSite != "" && !strings.Contains(c.SameSite, "$") && !isSameSite(c.SameSite):
		return nil, refuse("SameSite", strconv.Quote(c.SameSite), "must be strict, lax or none, or contain a variable")
	}
	c.Secrets = slices.Clone(c.Secrets)
	for i, secret := range c.Secrets {
		if len(secret) < MinSecret {
			return nil, refuse(fmt.Sprintf("Secrets[%d]", i), fmt.Sprintf("%d bytes", len(secret)),
				fmt.Sprintf("must have at least %d bytes", MinSecret))
		}
		c.Secrets[i] = slices.Clone(secret)
	}
	return &Binding{clock: o.clock(), cookie: &cookie{c}}, nil
}

// text writes the cookie, its attributes in nginx's order.
func (c *cookie) text(sid string, v Values, now time.Duration) string {
	t := make([]byte, 0, 128)
	t = append(t, c.Name...)
	t = append(t, '=')
	if len(c.Secrets) > 0 {
		t = sign(t, c.Secrets[0], c.Name, sid)
	} else {
		t = append(t, sid...)
	}
	t = c.expiry(t, now)
	// nginx's variables hold no control characters, but those of a caller may,
	// and would end the header line.
	if domain := v.of(c.Domain); domain != "" && !hasControl(domain) {
		t = append(append(t, "; domain="...), domain...)
	}
	if c.HTTPOnly {
		t = append(t, "; httponly"...)
	}
	if c.Secure {
		t = append(t, "; secure"...)
	}
	if site := v.of(c.SameSite); site != "" {
		if !isSameSite(site) {
			site = "strict"
		}
		t = append(append(t, "; samesite="...), site...)
	}
	if c.Path != "" {
		t = append(append(t, "; path="...), c.Path...)
	}
	return string(t)
}

// expiry writes the attributes expires and max-age.
func (c *cookie) expiry(t []byte, now time.Duration) []byte {
	life := c.Expires
	switch {
	case life == 0:
		return t
	case life == MaxExpires || life >= maxLife:
		return append(append(t, "; expires="...), maxExpires...)
	case life == ExpiresAtOnce:
		life = 0
	}
	seconds := int64(life / time.Second)
	at := time.Unix(int64(now/time.Second)+seconds, 0).UTC()
	// The two digits of the year have become ambiguous from 2038 on.
	layout := "; expires=Mon, 02-Jan-06 15:04:05 GMT; max-age="
	if at.Year() > 2037 {
		layout = "; expires=Mon, 02-Jan-2006 15:04:05 GMT; max-age="
	}
	return strconv.AppendInt(at.AppendFormat(t, layout), seconds, 10)
}

func isSameSite(s string) bool {
	return ascii.EqualFold(s, "strict") || ascii.EqualFold(s, "lax") || ascii.EqualFold(s, "none")
}

// hasControl reports whether s has a control character, which would end or garble a
// header line.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
