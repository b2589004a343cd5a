package nginxconf_test

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/peer"
)

// FuzzParse: no text makes a panic, and what is read and printed reads as
// the same again.
func FuzzParse(f *testing.F) {
	file, err := os.Open("../../internal/parity/testdata/blocks/blocks.jsonl")
	require.NoError(f, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct{ Text string }
		require.NoError(f, json.Unmarshal(lines.Bytes(), &r))
		f.Add(r.Text, false)
	}
	f.Add("upstream u { sticky name=a; jvm_route $cookie_a; check x; server a slow_start=1s srun_id=r; }", true)
	f.Fuzz(func(t *testing.T, text string, lenient bool) {
		opts := &nginxconf.ParseOptions{Lenient: lenient, AllowChoice: lenient, Convert: lenient}
		p, err := nginxconf.Parse(text, opts)
		opts.All = true
		past, all := nginxconf.Parse(text, opts)
		require.Equal(t, err == nil, all == nil, "the strict reading and the one past refusals agree")
		require.NotNil(t, past)
		if err != nil {
			_ = err.Error()
			return
		}
		for i := range p.Blocks {
			readsBack(t, &p.Blocks[i])
		}
	})
}

func readsBack(t *testing.T, b *nginxconf.Block) {
	text := b.String()
	again, err := nginxconf.Parse(text, nil)
	if err != nil && strings.HasPrefix(err.Error(), "trunk: unknown ") {
		return // a variable that the rest of the text made
	}
	require.NoError(t, err, "%s", text)
	require.Len(t, again.Blocks, 1)
	got, want := again.Blocks[0].Config, b.Config
	want.Variables, want.Warnings, got.Warnings = nil, nil, nil
	want.Policy = peer.Policy{} // a comment
	if !strings.Contains(text, "proxy_pass ") {
		want.Retry = balancer.Retry{} // no location can pass to a name like this
	}
	require.Equal(t, want, got, "%s", text)
	require.Equal(t, comments.ReplaceAllString(text, ""), comments.ReplaceAllString(again.Blocks[0].String(), ""))
}

// comments are what nginx has no words for, which is lost in between.
var comments = regexp.MustCompile(`(?m)^ *#.*\n`)

// hostile are the beginnings and middles of texts that cost the most, as far as
// anybody has thought of.
var hostile = []struct{ name, head, unit, tail string }{
	{"directives", "", "a b;", ""},
	{"servers", "upstream u {", "server a;", "}"},
	{"braces", "", "a{", ""},
	{"locations", "server {", "location a {", ""},
	{"passes in depth", "upstream u { server a; } server {", "location a { proxy_pass http://u; ", ""},
	{"passes", "upstream u { server a; } server {", "location a { proxy_pass http://u; proxy_read_timeout 1; }", "}"},
	{"blocks", "", "upstream u { server a; }", ""},
	{"names", "server { location / {", "proxy_pass http://u:1;", "} }"},
	{"unknown names", "http {", "x1y2z3q;", "}"},
	{"quotes", "upstream u { hash ", `\"`, ";"},
	{"comments", "", "#\n", ""},
	{"dollars", "upstream u { hash ", "$", ";"},
	{"variables", "upstream u { hash \"", "$host", "\"; server a; }"},
	{"parameters", "upstream u { server a ", "weight=1 ", "; }"},
	{"lua", "upstream u { balancer_by_lua_block {", "[=[ -- ]] ", ""},
	{"lua brackets", "upstream u { balancer_by_lua_block {", "[====", ""},
	{"maps", "map $a $b {", `"~(?<x" y;`, "}"},
	{"bytes", "upstream u { server ", "\xff", "; }"},
}

func hostileText(i int) string {
	h := hostile[i]
	return h.head + strings.Repeat(h.unit, (100<<10)/len(h.unit)) + h.tail
}

// BenchmarkParse reads 100 KB of each.
func BenchmarkParse(b *testing.B) {
	opts := &nginxconf.ParseOptions{Lenient: true, AllowChoice: true}
	for i, h := range hostile {
		text := hostileText(i)
		b.Run(strings.ReplaceAll(h.name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = nginxconf.Parse(text, opts)
			}
		})
	}
}
