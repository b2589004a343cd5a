package sticky_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/sticky"
)

// values are variables with fixed values.
func values(pairs ...string) sticky.Values {
	return func(text string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == text {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestRoute(t *testing.T) {
	both := sticky.Route{Variables: []string{"$cookie_route", "$arg_route"}}
	jvm := sticky.Route{Variables: []string{"$arg_route"}, Func: func(v sticky.Values) string {
		_, route, _ := strings.Cut(v("$cookie_jsessionid"), ".")
		return route
	}}
	tests := []struct {
		name   string
		route  sticky.Route
		values sticky.Values
		want   string
	}{
		{"the first", both, values("$cookie_route", "a", "$arg_route", "b"), "a"},
		{"the second, if the first is empty", both, values("$arg_route", "b"), "b"},
		{"none", both, values(), ""},
		{"no variables at all", both, nil, ""},
		{"the first counts, even if no peer can have it", both,
			values("$cookie_route", strings.Repeat("a", 33), "$arg_route", "b"), ""},
		{"a function", jvm, values("$cookie_jsessionid", "C0FFEE.r1"), "r1"},
		{"variables before the function", jvm, values("$cookie_jsessionid", "C0FFEE.r1", "$arg_route", "r2"), "r2"},
		{"a function without variables", jvm, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, err := sticky.New(test.route, nil)
			require.NoError(t, err)
			sid, err := b.Hint(context.Background(), test.values)
			require.NoError(t, err)
			require.Equal(t, test.want, sid)
			require.Empty(t, b.SetCookie("a", test.values))
		})
	}
}
