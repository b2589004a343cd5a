package directive_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer/nginxconf"
	"github.com/trunklb/trunk/internal/directive"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// lines has each directive in all its forms.
var lines = map[string][]string{
	"least_conn": {"least_conn"},
	"ip_hash":    {"ip_hash"},
	"hash":       {"hash $request_uri", "hash $request_uri consistent"},
	"random":     {"random", "random two"},
	"least_time": {"least_time header", "least_time last_byte", "least_time header inflight",
		"least_time connect", "least_time first_byte inflight"},
}

// Every directive makes a method that says the same of itself; the parser of upstream blocks
// makes the same method, and the printer writes the same line.
func TestEveryDirectiveThereAndBack(t *testing.T) {
	require.Len(t, lines, len(directive.Methods))
	for name := range directive.Methods {
		require.NotEmpty(t, lines[name], "%s needs lines here", name)
		for _, line := range lines[name] {
			words := strings.Fields(line)
			m, err := directive.Method(words, nil)
			require.NoError(t, err)
			require.Equal(t, words, m.Describe().Directive)
			require.Empty(t, m.Describe().Remedies)

			block := "upstream u { server a; server b; " + line + "; }"
			if m.Describe().NotHTTP != "" {
				block = "stream { upstream u { server a:1; server b:1; " + line + "; } }"
			}
			file, err := nginxconf.Parse(block, nil)
			require.NoError(t, err, line)
			require.Equal(t, m, file.Blocks[0].Config.Method)
			require.Contains(t, nginxconf.Format(file.Blocks[0].Config), line+";")
		}
	}
}

// A field of a method is in its directive, or else among its remedies, with which the method
// comes back: none is ever forgotten where a configuration is printed or recorded.
func TestEveryFieldIsDescribed(t *testing.T) {
	for name := range directive.Methods {
		bare, err := directive.Method(strings.Fields(lines[name][0]), nil)
		require.NoError(t, err)
		for i := range reflect.TypeOf(bare).NumField() {
			v := reflect.New(reflect.TypeOf(bare)).Elem()
			v.Set(reflect.ValueOf(bare))
			set(v.Field(i))
			m := v.Interface().(peer.Method)
			d := m.Describe()
			remedies, err := json.Marshal(d.Remedies)
			require.NoError(t, err)
			back, err := directive.Method(d.Directive, remedies)
			require.NoError(t, err)
			require.Equal(t, m, back, "%s.%s", name, v.Type().Field(i).Name)
		}
	}
}

// set gives a field a value that it does not have yet.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("$uri")
	case reflect.Int:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(1)
	}
}

// A remedy that the method does not have is refused.
func TestUnknownRemedy(t *testing.T) {
	_, err := directive.Method([]string{"random", "two"}, json.RawMessage(`{"KeepWeight":true}`))
	require.ErrorContains(t, err, "KeepWeight")
	_, err = directive.Method([]string{"fair"}, nil)
	require.ErrorIs(t, err, directive.ErrUnknown)
	m, err := directive.Method([]string{"random", "two"}, json.RawMessage(`{"KeepWeights":true}`))
	require.NoError(t, err)
	require.Equal(t, random.Method{Two: true, KeepWeights: true}, m)
}

// Every package with a Method is in the table.
func TestEveryMethodHasADirective(t *testing.T) {
	table, err := os.ReadFile("directive.go")
	require.NoError(t, err)
	builds := regexp.MustCompile(`(?m)^func \((\w+ )?Method\) Build\(`)
	files, err := filepath.Glob("../../*/*.go")
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := filepath.Base(filepath.Dir(file))
		if !builds.Match(text) || name == "roundrobin" { // which is no directive
			continue
		}
		found++
		require.Contains(t, string(table), `"github.com/trunklb/trunk/`+name+`"`, "Methods has nothing of package %s", name)
	}
	require.GreaterOrEqual(t, found, 5)
}
