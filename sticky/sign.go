package sticky

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// tagSize is the length of a signature in bytes. To guess one takes 2^127
// requests on average.
const tagSize = 16

// encoding has only characters that every cookie may contain. It is strict, so
// that one sid has one signed form; but it ignores line breaks, which
// verify refuses.
var encoding = base64.RawURLEncoding.Strict()

// maxSigned is the maximal length of a signed value.
var maxSigned = encoding.EncodedLen(tagSize + maxSID)

// sign appends the signed form of a sid to t: see Cookie.Secrets.
func sign(t, secret []byte, name, sid string) []byte {
	raw := make([]byte, 0, sha256.Size+maxSID)
	raw = append(mac(raw, secret, name, sid)[:tagSize], sid...)
	return encoding.AppendEncode(t, raw)
}

// verify returns the sid in a signed value. Empty: no secret has signed it.
func verify(value string, secrets [][]byte, name string) string {
	if len(value) <= encoding.EncodedLen(tagSize) || len(value) > maxSigned || strings.ContainsAny(value, "\r\n") {
		return ""
	}
	raw, err := encoding.DecodeString(value)
	if err != nil || len(raw) <= tagSize {
		return ""
	}
	tag, sid := raw[:tagSize], string(raw[tagSize:])
	for _, secret := range secrets {
		// How long this takes does not depend on how much of a tag is right.
		if hmac.Equal(tag, mac(nil, secret, name, sid)[:tagSize]) {
			return sid
		}
	}
	return ""
}

// mac appends what a secret makes of a sid. The name goes in, so that the cookie of one
// upstream is worth nothing to another; it contains no NUL, so that no other pair
// of name and sid gives the same text.
func mac(to, secret []byte, name, sid string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("trunk sticky cookie\x00"))
	h.Write([]byte(name))
	h.Write([]byte{0})
	h.Write([]byte(sid))
	return h.Sum(to)
}
