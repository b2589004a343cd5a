package sticky

import "strings"

// cookieHeader is the text whose value is all cookies of a request: its Cookie
// header, several of them joined with "; ".
const cookieHeader = "$http_cookie"

// maxHeader is how many bytes of a Cookie header are read: all that nginx, as
// it is configured by default, takes of a whole request's header. What is beyond
// is not looked at.
const maxHeader = 32 << 10

// read returns the sid in a Cookie header. Empty: there is none, or its
// signature is not one of ours.
func (c *cookie) read(header string) string {
	value := find(header, c.Name)
	if len(c.Secrets) > 0 {
		return verify(value, c.Secrets, c.Name)
	}
	return value
}

// find returns the value of the first cookie of that name, as nginx finds it:
// names are the same whatever their case; a value goes up to the next
// semicolon, with its quotes; another cookie may be ended by a comma too; and the
// bare name, without an equals sign, hides the cookie after it.
func find(header, name string) string {
	if len(header) > maxHeader {
		header = header[:maxHeader]
	}
	for len(header) > 0 {
		if len(header) >= len(name) && strings.EqualFold(header[:len(name)], name) {
			header = strings.TrimLeft(header[len(name):], " ")
			if header == "" {
				return ""
			}
			sign := header[0]
			header = header[1:]
			if sign == '=' {
				value, _, _ := strings.Cut(header, ";")
				return strings.TrimLeft(value, " ")
			}
		}
		end := strings.IndexAny(header, ";,")
		if end < 0 {
			return ""
		}
		header = strings.TrimLeft(header[end+1:], " ")
	}
	return ""
}
