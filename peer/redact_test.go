package peer_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/peer"
)

// Every text of what an upstream tells, also one that it gets some day, is redacted or
// is one that may be told; and what was there before is as it was.
func TestAllTextsAreRedacted(t *testing.T) {
	var kinds []string
	hide := func(kind peer.TextKind, text string) string {
		require.Contains(t, text, "secret")
		kinds = append(kinds, string(kind))
		return "hidden"
	}
	decision := func() *peer.Decision { return &peer.Decision{Peers: make([]peer.Candidate, 1)} }
	event := peer.Event{Decision: decision(), Lookup: &peer.Lookup{Added: make([]string, 1), Removed: make([]string, 1), Err: errors.New("secret")}}
	for _, test := range []struct {
		name   string
		all    any
		hidden func(any) any
		want   string
	}{
		{"decision", decision(), func(v any) any { return v.(*peer.Decision).Redacted(hide) }, "key client hint addr addr"},
		{"event", &event, func(v any) any { return v.(*peer.Event).Redacted(hide) },
			"addr addr addr addr addr label label hint hint key client hint addr addr addr addr addr addr error"},
		{"snapshot", &peer.Snapshot{Peers: make([]peer.PeerSnapshot, 1)}, func(v any) any { return v.(*peer.Snapshot).Redacted(hide) },
			"error addr addr addr addr addr label label hint hint"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kinds = nil
			fill(reflect.ValueOf(test.all).Elem(), "")
			before := asJSON(t, test.all)
			hidden := test.hidden(test.all)
			require.NotContains(t, asJSON(t, hidden), "secret")
			require.ElementsMatch(t, strings.Fields(test.want), kinds)
			require.Equal(t, before, asJSON(t, test.all))

			kinds = nil
			reflect.ValueOf(test.all).Elem().SetZero()
			test.hidden(test.all)
			require.Empty(t, kinds, "there is nothing to redact")
		})
	}
}

func asJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// fill writes a secret into every text below, but for those that may be shown: the
// method's name, and what the method says.
func fill(v reflect.Value, field string) {
	if v.Type() == reflect.TypeFor[peer.Labels]() {
		v.Set(reflect.ValueOf(peer.Labels{}.With("label", "secret")))
		return
	}
	switch v.Kind() {
	case reflect.String:
		if field != "Method" && field != "Detail" && field != "Rule" {
			v.SetString("secret " + field)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), field)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name)
		}
	}
}
