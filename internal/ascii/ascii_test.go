package ascii_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/internal/ascii"
)

func TestFoldsOnlyASCII(t *testing.T) {
	for _, test := range []struct {
		s, t string
		want bool
	}{
		{"Sid", "sID", true},
		{"", "", true},
		{"sid", "sids", false},
		{"\u017Fid", "sid", false}, // package strings: true
		{"\u212Aey", "key", false}, // likewise
		{"É", "é", false},          // likewise
		{"@", "`", false},          // they differ by the same bit
		{"[", "{", false},
	} {
		require.Equal(t, test.want, ascii.EqualFold(test.s, test.t), "%q %q", test.s, test.t)
	}
	require.True(t, ascii.HasPrefixFold("UNIX:/s", "unix:"))
	require.False(t, ascii.HasPrefixFold("uni", "unix:"))
	require.Equal(t, "\u212Aé É[", ascii.ToLower("\u212Aé É["))
	require.Equal(t, "abcz", ascii.ToLower("aBcZ"))
}

// For text that is ASCII it is what package strings does.
func TestASCIIAsPackageStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~]{0,8}`)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		require.Equal(t, strings.ToLower(a), ascii.ToLower(a))
		require.Equal(t, strings.EqualFold(a, b), ascii.EqualFold(a, b))
		require.True(t, ascii.EqualFold(a, strings.ToUpper(a)))
	})
}
