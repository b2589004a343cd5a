package balancer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a program does not use it does not link: nginx's grammar without nginxconf, and
// net/http's client without RoundTripper.
func TestAProgramLinksOnlyWhatItUses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds three programs")
	}
	const (
		grammar = "trunk/internal/conflex.Parse\n"
		walk    = "trunk/balancer/nginxconf."
		lexer   = "trunk/internal/conflex.(*lexer)"
		client  = "net/http.(*Transport)"
	)
	for _, c := range []struct {
		name, imports, use string
		without, with      []string
	}{
		{"a config and RoundTripper", `"github.com/trunklb/trunk/balancer"`,
			`up, err := balancer.New(ctx, balancer.Config{Name: "u", Servers: []balancer.Server{{Addr: "127.0.0.1:1"}}}); up.RoundTripper(nil).RoundTrip(nil); return err`,
			[]string{grammar, walk, lexer}, []string{client}},
		{"a config, Start and DialContext", `"github.com/trunklb/trunk/balancer"`,
			`up, err := balancer.New(ctx, balancer.Config{Name: "u", Servers: []balancer.Server{{Addr: "127.0.0.1:1"}}}); for try := up.Start(ctx, balancer.Input{}); try.Next(); { try.Done(nil) }; up.DialContext(ctx, "tcp", "u"); return err`,
			[]string{grammar, walk, lexer, client}, nil},
		{"a text and Start", `"github.com/trunklb/trunk/balancer";"github.com/trunklb/trunk/balancer/nginxconf"`,
			`up, err := nginxconf.NewUpstream(ctx, "upstream u { server 127.0.0.1:1; }"); up.Start(ctx, balancer.Input{}); return err`,
			[]string{client}, []string{grammar, walk, lexer}},
	} {
		t.Run(c.name, func(t *testing.T) {
			symbols := symbolsOf(t, "package main\nimport (\"context\";"+c.imports+")\nfunc main() { if err := use(context.Background()); err != nil { panic(err) } }\nfunc use(ctx context.Context) error { "+c.use+" }\n")
			for _, s := range c.without {
				assert.False(t, strings.Contains(symbols, s), s)
			}
			for _, s := range c.with {
				assert.True(t, strings.Contains(symbols, s), s)
			}
		})
	}
}

// symbolsOf builds a program within this module and lists its symbols.
func symbolsOf(t *testing.T, program string) string {
	dir, err := os.MkdirTemp(".", "_link")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	out := filepath.Join(t.TempDir(), "program")
	build, err := exec.Command("go", "build", "-o", out, filepath.Join(dir, "main.go")).CombinedOutput()
	require.NoError(t, err, "%s", build)
	symbols, err := exec.Command("go", "tool", "nm", out).Output()
	require.NoError(t, err)
	return strings.ReplaceAll(string(symbols), "github.com/trunklb/", "")
}
