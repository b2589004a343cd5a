package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSample(t *testing.T) {
	var out strings.Builder
	require.True(t, migrate(&out, "the sample", sample, nil))
	text := out.String()
	for _, want := range []string{
		`line 26: invalid parameter "slow_start=30s"`,
		"5 upstreams.",
		"=== app (line 23)",
		"proxy_next_upstream error timeout http_502 http_503;",
		"location /reports",
		"sticky cookie srv expires=3600s path=/;",
		"localhost is 127.0.0.1 and ::1",
		"the weights are too large for ip_hash",
		"=== db (line 82)",
		"It is in stream { }",
		"more_set_headers",
		"include /etc/nginx/mime.types",
	} {
		assert.Contains(t, text, want)
	}
}

func TestAFileWithIncludes(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(main, []byte("http { include mime.types; include conf.d/*.conf; }"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "conf.d"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "conf.d", "a.conf"), []byte("upstream a { server 10.0.0.1; }"), 0o600))

	text, err := os.ReadFile(main)
	require.NoError(t, err)
	var out strings.Builder
	require.True(t, migrate(&out, main, string(text), filesBeside(&out, main)))
	assert.Contains(t, out.String(), "1 upstream.")
	assert.Contains(t, out.String(), "mime.types cannot be read here")
	assert.Contains(t, out.String(), "a.conf, line 1")
}

func TestWhatCannotBeRead(t *testing.T) {
	var out strings.Builder
	assert.False(t, migrate(&out, "x", "upstream u {\n server 10.0.0.1 weight=0;\n}", nil))
	assert.Contains(t, out.String(), "line 2: invalid parameter \"weight=0\"\n    -> write weight=N")
	assert.Contains(t, out.String(), "=== u (line 1)", "the rest is reported all the same")
}

func TestOneRunFindsAll(t *testing.T) {
	var out strings.Builder
	assert.False(t, migrate(&out, "x", `upstream u {
    server 10.0.0.1 weight=0;
    fair;
    upsync 127.0.0.1:8500/v1/kv/u;
    server 10.0.0.2 max_fail=3;
    server 10.0.0.3;
}
upstream v { server 10.0.0.4; }
upstream v { server 10.0.0.5; }`, nil))
	for _, want := range []string{"line 2: ", "line 3: ", "line 4: ", "line 5: ", "line 9: ", "2 upstreams.", "server 10.0.0.3;", "did you mean max_fails?"} {
		assert.Contains(t, out.String(), want)
	}
}
