package sticky

import (
	"reflect"
	"strconv"

	"github.com/trunklb/trunk/internal/fields"
	"github.com/trunklb/trunk/internal/spell"
	"github.com/trunklb/trunk/peer"
)

// Describe returns the description of a Sticky; the zero one for nil.
func Describe(s Sticky) peer.Description {
	if s == nil || isNil(s) {
		return peer.Description{}
	}
	return s.Describe()
}

// isNil reports whether a Sticky is a pointer to nothing.
func isNil(s Sticky) bool {
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// describe is the description of a binding, whose directive begins with sticky and a kind.
func describe(kind string, args []string, remedies map[string]any) peer.Description {
	return peer.Description{Name: "sticky", Directive: append([]string{"sticky", kind}, args...), Remedies: remedies,
		NotStream: "it is for HTTP; use hash, with Input.Key"}
}

// Describe implements Sticky. Of Secrets it says only that they are set.
func (c Cookie) Describe() peer.Description {
	args := []string{c.Name}
	switch {
	case c.Expires == MaxExpires:
		args = append(args, "expires=max")
	case c.Expires == ExpiresAtOnce:
		args = append(args, "expires=0")
	case c.Expires > 0:
		args = append(args, "expires="+spell.Seconds(c.Expires))
	}
	for _, a := range []struct{ name, value string }{{"domain", c.Domain}, {"path", c.Path}, {"samesite", c.SameSite}} {
		if a.value != "" {
			args = append(args, a.name+"="+a.value)
		}
	}
	if c.HTTPOnly {
		args = append(args, "httponly")
	}
	if c.Secure {
		args = append(args, "secure")
	}
	remedies := fields.Set(c, "Name Expires Domain Path SameSite HTTPOnly Secure Secrets")
	if len(c.Secrets) > 0 {
		if remedies == nil {
			remedies = map[string]any{}
		}
		remedies["Secrets"] = "set"
	}
	return describe("cookie", args, remedies)
}

// Describe implements Sticky.
func (r Route) Describe() peer.Description {
	return describe("route", r.Variables, fields.Set(r, "Variables"))
}

// Describe implements Sticky. A zone without a name has none in the directive either: it
// ends in ":" and the size.
func (l Learn) Describe() peer.Description {
	var args []string
	for _, v := range l.Create {
		args = append(args, "create="+v)
	}
	for _, v := range l.Lookup {
		args = append(args, "lookup="+v)
	}
	size := l.ZoneSize
	if size < spell.MinZone {
		size = 1 << 20
	}
	args = append(args, "zone="+l.Zone+":"+strconv.FormatInt(size, 10))
	if l.Timeout > 0 {
		args = append(args, "timeout="+spell.Millis(l.Timeout))
	}
	if l.Header {
		args = append(args, "header")
	}
	return describe("learn", args, fields.Set(l, "Create Lookup Zone ZoneSize Timeout Header"))
}
