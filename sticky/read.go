package sticky

// read returns the sid in a cookie's value. Empty: there is none, or its signature is
// not one of ours.
func (c *cookie) read(value string) string {
	if len(c.Secrets) > 0 {
		return verify(value, c.Secrets, c.Name)
	}
	return value
}

// variable is the text whose value is the cookie's.
func (c *cookie) variable() string { return "$cookie_" + c.Name }
