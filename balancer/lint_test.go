package balancer_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
	"github.com/trunklb/trunk/sticky"
)

func codes(warnings []balancer.Warning) (out []balancer.Code) {
	for _, w := range warnings {
		out = append(out, w.Code)
	}
	return out
}

func TestLint(t *testing.T) {
	type servers = []balancer.Server
	two := servers{{Addr: "10.0.0.1:80"}, {Addr: "10.0.0.2:80"}}
	ten := slices.Repeat(servers{{Addr: "10.0.0.1:80", Weight: 1000}}, 10)
	for _, c := range []struct {
		name   string
		config balancer.Config
		want   []balancer.Code
	}{
		{"nothing to say", balancer.Config{Servers: two}, nil},
		{"a lone live server", balancer.Config{Servers: servers{two[0], {Addr: "10.0.0.2:80", Down: true}}}, []balancer.Code{balancer.CodeLoneServer}},
		{"the other drains", balancer.Config{Servers: servers{two[0], {Addr: "10.0.0.2:80", Drain: true}}}, []balancer.Code{balancer.CodeLoneServer}},
		{"never taken out", balancer.Config{Servers: servers{{Addr: "10.0.0.1:80", MaxFails: balancer.NoMaxFails}, {Addr: "10.0.0.2:80", Down: true}}}, nil},
		{"alone in its block", balancer.Config{Servers: two[:1]}, nil},
		{"a live backup", balancer.Config{Servers: servers{two[0], {Addr: "10.0.0.2:80", Backup: true}}}, nil},
		{"localhost", balancer.Config{Servers: servers{{Addr: "localhost:80"}, two[0]}}, []balancer.Code{balancer.CodeLocalhost}},
		{"max_fails above weight", balancer.Config{Servers: servers{{Addr: "10.0.0.1:80", MaxFails: 3}, two[1]}}, []balancer.Code{balancer.CodeMaxFailsAboveWeight}},
		{"max_fails at the weight", balancer.Config{Servers: servers{{Addr: "10.0.0.1:80", MaxFails: 3, Weight: 3}, two[1]}}, nil},
		{"ip_hash has no effective weight", balancer.Config{Method: iphash.New(), Servers: servers{{Addr: "10.0.0.1:80", MaxFails: 3}, two[1]}}, nil},
		{"tries before the backup", balancer.Config{Retry: balancer.Retry{Tries: 2}, Servers: append(slices.Clone(two), balancer.Server{Addr: "10.0.0.3:80", Backup: true})}, []balancer.Code{balancer.CodeTriesBeforeBackup}},
		{"tries for the backup too", balancer.Config{Retry: balancer.Retry{Tries: 3}, Servers: append(slices.Clone(two), balancer.Server{Addr: "10.0.0.3:80", Backup: true})}, nil},
		{"great weights under ip_hash", balancer.Config{Method: iphash.New(), Servers: ten}, []balancer.Code{balancer.CodeWeightsBeyondHash}},
		{"the same under round robin", balancer.Config{Servers: ten}, nil},
		{"the same under consistent", balancer.Config{Method: hash.NewConsistent("$host"), Servers: ten}, nil},
		{"four of 10000 under hash", balancer.Config{Method: hash.New("$host"), Servers: slices.Repeat(servers{{Addr: "10.0.0.1:80", Weight: 10000}}, 4)}, []balancer.Code{balancer.CodeWeightsBeyondHash}},
		{"small weights under hash", balancer.Config{Method: hash.New("$host"), Servers: slices.Repeat(servers{{Addr: "10.0.0.1:80", Weight: 10}}, 4)}, nil},
		{"random two with uneven weights", balancer.Config{Method: random.NewTwo(), Servers: servers{{Addr: "10.0.0.1:80", Weight: 9}, two[1]}}, []balancer.Code{balancer.CodeRandomTwoWeights}},
		{"great weights and the remedy", balancer.Config{Method: iphash.Method{WholeRange: true}, Servers: ten}, nil},
		{"random two and the remedy", balancer.Config{Method: random.Method{Two: true, KeepWeights: true}, Servers: servers{{Addr: "10.0.0.1:80", Weight: 9}, two[1]}}, nil},
		{"max_fails and the remedy", balancer.Config{Policy: peer.Policy{Penalty: 0.1}, Servers: servers{{Addr: "10.0.0.1:80", MaxFails: 3}, two[1]}}, nil},
		{"a constant key", balancer.Config{Method: hash.New("consistent"), Servers: two}, []balancer.Code{balancer.CodeConstantKey}},
		{"localhost takes both tries before the backup", balancer.Config{Retry: balancer.Retry{Tries: 2}, Servers: servers{{Addr: "localhost:80"}, {Addr: "10.0.0.3:80", Backup: true}}}, []balancer.Code{balancer.CodeLocalhost, balancer.CodeTriesBeforeBackup}},
		{"a name may take all tries before the backup", balancer.Config{Retry: balancer.Retry{Tries: 2}, Servers: servers{{Addr: "app.example:80"}, {Addr: "10.0.0.3:80", Backup: true}}}, []balancer.Code{balancer.CodeNameTries}},
		{"the last try is kept for the backup", balancer.Config{Retry: balancer.Retry{Tries: 2, KeepBackup: true}, Servers: servers{{Addr: "localhost:80"}, {Addr: "10.0.0.3:80", Backup: true}}}, []balancer.Code{balancer.CodeLocalhost}},
		{"a name under hash", balancer.Config{Method: hash.New("$host"), Servers: servers{two[0], {Addr: "app.example:80"}}}, []balancer.Code{balancer.CodeOrder}},
		{"a name under ip_hash", balancer.Config{Method: iphash.New(), Servers: servers{{Addr: "app.example:80"}}}, []balancer.Code{balancer.CodeOrder}},
		{"names that are sorted under hash", balancer.Config{Method: hash.New("$host"), Servers: servers{{Addr: "app.example:80", Resolve: true}}}, nil},
		{"a name under consistent hash", balancer.Config{Method: hash.NewConsistent("$host"), Servers: servers{two[0], {Addr: "app.example:80"}}}, nil},
		{"Lua's placeholder", balancer.Config{Servers: servers{{Addr: "0.0.0.1:80"}}}, []balancer.Code{balancer.CodePlaceholder}},
		{"a placeholder that is down", balancer.Config{Servers: servers{two[0], two[1], {Addr: "0.0.0.1:80", Down: true}}}, nil},
		{"samesite=none, and not secure", balancer.Config{Sticky: sticky.Cookie{Name: "a", Path: "/", SameSite: "None"}, Servers: two}, []balancer.Code{balancer.CodeCookieInsecure}},
		{"samesite=none, secure", balancer.Config{Sticky: &sticky.Cookie{Name: "a", Path: "/", SameSite: "none", Secure: true}, Servers: two}, nil},
		{"a cookie without path", balancer.Config{Sticky: &sticky.Cookie{Name: "a"}, Servers: two}, []balancer.Code{balancer.CodeCookiePath}},
		{"a variable that nothing makes", balancer.Config{Method: hash.New("$pick"), Servers: two}, []balancer.Code{balancer.CodeUnknownVariable}},
		{"a variable of one's own", balancer.Config{Method: hash.New("$pick"), Servers: two, Variables: map[string]func(*http.Request) string{"Pick": nil}}, nil},
		{"a route by a variable that nothing makes", balancer.Config{Sticky: sticky.Route{Variables: []string{"$jvm"}}, Servers: two}, []balancer.Code{balancer.CodeUnknownVariable}},
		{"a shared route", balancer.Config{Servers: servers{{Addr: "10.0.0.1:80", Route: "a"}, {Addr: "10.0.0.2:80", Route: "a"}}}, []balancer.Code{balancer.CodeSharedRoute}},
	} {
		t.Run(c.name, func(t *testing.T) {
			warnings := balancer.Lint(c.config)
			assert.Equal(t, c.want, codes(warnings))
			for _, w := range warnings {
				assert.NotEmpty(t, w.Message)
				assert.NotEmpty(t, w.Hint)
			}
		})
	}
}

// New warns of a name that can be the host of no URL; an upstream for Start needs none.
func TestNameThatIsNoHost(t *testing.T) {
	for name, warns := range map[string]bool{"": true, "my_app:8080": true, "http://app": true, "my_app": false, "app.example": false, "::1": false} {
		up, err := balancer.New(context.Background(), balancer.Config{Name: name, Servers: []balancer.Server{{Addr: "10.0.0.1:80"}}})
		require.NoError(t, err)
		got := slices.ContainsFunc(up.Warnings(), func(w balancer.Warning) bool { return w.Code == balancer.CodeName })
		require.Equal(t, warns, got, name)
	}
}
