package recording_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/oplog"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
)

// keyed hides the kinds of texts that it is given behind a keyed hash; all, if none.
func keyed(kinds ...string) func(*recording.WriterOptions) {
	return func(o *recording.WriterOptions) {
		o.Redact = func(what peer.TextKind, text string) string {
			if len(kinds) > 0 && !slices.Contains(kinds, string(what)) {
				return text
			}
			h := hmac.New(sha256.New, []byte("secret"))
			fmt.Fprint(h, what, " ", text)
			return hex.EncodeToString(h.Sum(nil))
		}
	}
}

// textual are methods that choose by texts.
func textual(m peer.Method) bool {
	d := peer.Describe(m)
	return d.Key != "" || d.Client
}

// A redacted recording says nothing of what it hides, and replays to the same picks
// and states.
func TestRedactedRecordings(t *testing.T) {
	for i, m := range methods {
		if textual(m) {
			continue
		}
		t.Run(fmt.Sprint(i, " ", m), func(t *testing.T) {
			t.Parallel()
			var file bytes.Buffer
			s, w := newStage(t, uint64(i), m, &file, keyed())
			s.play(1500)
			require.NoError(t, w.Close())
			result, decisions := replayed(t, file.Bytes())
			require.Equal(t, len(s.decisions), len(decisions))
			require.Greater(t, result.Operations, 1000)
			// The addresses, the name, a key, a hint, the routes, the clients.
			for _, text := range []string{"192.0.2.", "name.example", "x=<&>", "nobody's", `"r\u00ff`, "203.0.113", "2001:db8"} {
				require.NotContains(t, file.String(), text)
			}
			require.Contains(t, file.String(), `"redacted":true`)
		})
	}
}

// Where texts decide they can be left as they are; where they are hidden the
// replay says so.
func TestRedactedTextsThatDecide(t *testing.T) {
	for _, test := range []struct {
		name   string
		method peer.Method
		hidden []string
		same   bool
	}{
		{"hash, all but the key", hash.New("$uri"), []string{"addr", "client", "hint"}, true},
		{"hash, the key", hash.New("$uri"), []string{"key"}, false},
		{"consistent, all but key and addresses", hash.NewConsistent("$uri"), []string{"client", "hint"}, true},
		{"consistent, the addresses", hash.NewConsistent("$uri"), []string{"addr"}, false},
		{"ip_hash, all but the client", iphash.New(), []string{"addr", "key", "hint"}, true},
		{"ip_hash, the client", iphash.New(), []string{"client"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var file bytes.Buffer
			s, w := newStage(t, 1, test.method, &file, keyed(test.hidden...))
			s.play(1500)
			require.NoError(t, w.Close())
			_, err := recording.Replay(&file, nil, nil)
			if test.same {
				require.NoError(t, err)
				return
			}
			var d *recording.Difference
			require.ErrorAs(t, err, &d)
			require.True(t, d.Redacted)
			require.Contains(t, err.Error(), "the recording is redacted")
		})
	}
}

// What makes two peers one is refused, without telling who they were.
func TestRedactionThatMixesUpPeers(t *testing.T) {
	for what, f := range map[string]func(what peer.TextKind, text string) string{
		"all": func(peer.TextKind, string) string { return "x" },
		"sids": func(what peer.TextKind, text string) string {
			return map[peer.TextKind]string{peer.TextAddr: text, peer.TextHint: "x"}[what]
		},
		"addresses": func(what peer.TextKind, text string) string {
			return map[peer.TextKind]string{peer.TextAddr: "x", peer.TextHint: text}[what]
		},
		"nothing": func(peer.TextKind, string) string { return "" },
	} {
		t.Run(what, func(t *testing.T) {
			w := recording.NewWriter(&bytes.Buffer{}, &recording.WriterOptions{Redact: f})
			servers := abc
			if what == "nothing" {
				servers = abc[:1] // that alone is too little
			}
			_, err := peer.New(servers, nil, &peer.Options{Record: w})
			var refused *peer.ConfigError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "Redact", refused.Field)
		})
	}
	t.Run("nothing follows", func(t *testing.T) {
		var file bytes.Buffer
		w := recording.NewWriter(&file, &recording.WriterOptions{Redact: func(what peer.TextKind, text string) string { return string(what) + text[:1] }})
		_, err := peer.New(abc, nil, &peer.Options{Record: w})
		require.NoError(t, err)
		set, err := peer.NewSet([]peer.Server{{Addr: "a", Route: "1"}, {Addr: "b", Route: "1b"}}, 0)
		require.NoError(t, err)
		require.ErrorContains(t, w.Record([]oplog.Operation[*peer.Set, peer.State]{{Kind: oplog.Header, Request: 1}, {Kind: oplog.Update, Set: set}, {Kind: oplog.Header, Request: 2}}), "Redact")
		require.Contains(t, file.String(), `"id":1`)
		require.NotContains(t, file.String(), `"id":2`)
	})
	t.Run("later", func(t *testing.T) {
		// Not even one that has gone may come back as another.
		first := func(what peer.TextKind, text string) string { return string(what) + text[:1] }
		var file bytes.Buffer
		w := recording.NewWriter(&file, &recording.WriterOptions{Redact: first})
		up, err := peer.New([]peer.Server{{Addr: "alpha", Route: "1"}, {Addr: "b", Route: "2"}}, nil, &peer.Options{Record: w})
		require.NoError(t, err)
		r := &peer.Request{Client: netip.MustParseAddr("192.0.2.1")}
		request(t, up, r, peer.OK)
		require.NoError(t, up.Update([]peer.Server{{Addr: "b", Route: "2"}}))
		require.NoError(t, up.Update([]peer.Server{{Addr: "b", Route: "2"}, {Addr: "avocado", Route: "3"}}))
		request(t, up, r, peer.OK)
		require.ErrorContains(t, w.Close(), "Redact")
		require.Contains(t, file.String(), `"end":"trunk: Redact: must give different`)
		require.False(t, strings.Contains(file.String(), "alpha") || strings.Contains(file.String(), "avocado"))
		result, _ := replayed(t, file.Bytes())
		require.Equal(t, 1, result.Gets)
		require.Contains(t, result.End, "Redact")
	})
}
