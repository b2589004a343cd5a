package peer

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A slotSet holds what was put into it since it was emptied, within the words that are in
// the set itself and beyond them, in whatever order the slots came.
func TestSlotSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slotSet
		room, want := 1, map[int32]bool{}
		s.reset(room)
		slot := func(t *rapid.T) int32 { return int32(rapid.IntRange(0, room-1).Draw(t, "slot")) }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i := slot(t)
				s.add(i)
				want[i] = true
			},
			"remove": func(t *rapid.T) {
				i := slot(t)
				s.remove(i)
				delete(want, i)
			},
			"grow": func(t *rapid.T) {
				room = rapid.IntRange(room, 500).Draw(t, "room")
				s.grow(room)
			},
			"reset": func(t *rapid.T) {
				room = rapid.IntRange(1, 500).Draw(t, "room")
				s.reset(room)
				clear(want)
			},
			"": func(t *rapid.T) {
				require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(s.all()))
				for i := range int32(room) {
					if s.has(i) != want[i] {
						require.Equal(t, want[i], s.has(i), "slot %d", i)
					}
				}
			},
		})
	})
}
