package peer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
)

func ExampleLabels() {
	labels := peer.Labels{}.With("rack", "r7").With("owner", "search")
	for name, value := range labels.All() {
		fmt.Println(name, value)
	}
	text, _ := json.Marshal(labels)
	fmt.Println(string(text))
	fmt.Println(labels == peer.LabelsOf(map[string]string{"owner": "search", "rack": "r7"}))
	// Output:
	// owner search
	// rack r7
	// {"owner":"search","rack":"r7"}
	// true
}

// Labels are a map: equal where it is, and the same back from JSON.
func TestLabelsAreAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.StringN(0, 4, 16)
		m := rapid.MapOf(texts, texts).Draw(t, "m")
		other := rapid.MapOf(texts, texts).Draw(t, "other")
		labels := peer.LabelsOf(m)
		require.Equal(t, m, maps.Collect(labels.All()))
		require.Equal(t, maps.Equal(m, other), labels == peer.LabelsOf(other))

		name, value := texts.Draw(t, "name"), texts.Draw(t, "value")
		want, has := m[name]
		got, ok := labels.Get(name)
		require.Equal(t, has, ok)
		require.Equal(t, want, got)

		text, err := json.Marshal(labels)
		require.NoError(t, err)
		var back peer.Labels
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, labels, back)

		more := labels.With(name, value)
		require.Equal(t, m, maps.Collect(labels.All()), "labels never change")
		m[name] = value
		require.Equal(t, peer.LabelsOf(m), more)
	})
}

// buildCounter counts how often a method is built.
type buildCounter struct {
	peer.Method
	builds *int
}

func (c buildCounter) Build(s *peer.Set) (peer.Selector, error) {
	*c.builds++
	return c.Method.Build(s)
}

// A change of labels alone builds nothing again, and is no new set; but the peers have them.
func TestRelabel(t *testing.T) {
	builds := 0
	servers := []peer.Server{{Addr: "a"}, {Addr: "b", Backup: true}, {Addr: "c", Backup: true}}
	var events []peer.EventKind
	up, err := peer.New(servers, buildCounter{leastconn.New(), &builds}, &peer.Options{OnEvent: func(e peer.Event) { events = append(events, e.Kind) }})
	require.NoError(t, err)

	// A request that has moved to the backup group stays there.
	r := &peer.Request{}
	require.NoError(t, up.Begin(r))
	for _, want := range []string{"a", "b"} {
		require.NoError(t, up.Get(r))
		got, _ := up.Peer(r)
		require.Equal(t, want, got.Server.Addr)
		if want == "a" {
			require.NoError(t, up.Free(r, peer.Next))
		}
	}
	tries := r.Tries()

	servers[0].Labels = peer.Labels{}.With("rack", "r1")
	servers[1].Labels = peer.Labels{}.With("rack", "r2")
	require.NoError(t, up.Update(servers))
	require.Equal(t, 1, builds)
	require.Equal(t, 1, up.Snapshot().Version)
	require.Empty(t, events)
	for i, p := range up.Snapshot().Peers {
		require.Equal(t, servers[i].Labels, p.Server.Labels)
	}
	got, _ := up.Peer(r)
	require.Equal(t, servers[1].Labels, got.Server.Labels)
	require.Equal(t, servers[0].Labels, up.Set().Server(peer.Primary, 0).Labels)

	require.NoError(t, up.Free(r, peer.Next))
	require.Equal(t, tries-1, r.Tries())
	require.NoError(t, up.Get(r))
	got, _ = up.Peer(r)
	require.Equal(t, "c", got.Server.Addr)

	servers[0].Weight = 2
	require.NoError(t, up.Update(servers))
	require.Equal(t, 2, builds)
	require.Equal(t, 2, up.Snapshot().Version)
}
