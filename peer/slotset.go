package peer

import (
	"iter"
	"math/bits"
)

// slotSet is a set of slots. Most requests try one peer: the first slot is a field of its
// own, and the bits are used from the second on. Up to inlineSlots need no memory of
// their own.
type slotSet struct {
	any, many bool
	first     int32 // none: it was removed
	// low and high bound the slots in it, so that few slots among many are
	// found and cleared without a look at all the words.
	low, high int32
	inline    [inlineSlots / 64]uint64
	more      []uint64
}

const inlineSlots = 128

// reset empties the set and makes room for n slots. It allocates only for more
// than inlineSlots, and only when it has no room from an earlier use.
func (b *slotSet) reset(n int) {
	b.any = false
	if b.many || n > inlineSlots {
		b.resetBits(n)
	}
}

func (b *slotSet) resetBits(n int) {
	if b.many {
		b.clear()
	}
	b.grow(n)
}

// grow makes room for n slots, where fewer were enough before.
func (b *slotSet) grow(n int) {
	if words := (n - inlineSlots + 63) / 64; words > len(b.more) {
		b.more = append(b.more, make([]uint64, words-len(b.more))...)
	}
}

// clear empties the bits.
func (b *slotSet) clear() {
	for word := b.low / 64; word <= b.high/64; word++ {
		*b.word(word * 64) = 0
	}
	b.many = false
}

func (b *slotSet) has(slot int32) bool { return b.any && (slot == b.first || b.many && b.bit(slot)) }

func (b *slotSet) bit(slot int32) bool { return *b.word(slot)&(1<<(slot%64)) != 0 }

func (b *slotSet) add(slot int32) {
	if !b.any {
		b.any, b.first = true, slot
	} else if slot != b.first {
		b.addBit(slot)
	}
}

func (b *slotSet) addBit(slot int32) {
	if !b.many {
		b.many, b.low, b.high = true, slot, slot
	}
	b.low, b.high = min(b.low, slot), max(b.high, slot)
	*b.word(slot) |= 1 << (slot % 64)
}

func (b *slotSet) remove(slot int32) {
	if slot == b.first {
		b.first = none
	} else {
		*b.word(slot) &^= 1 << (slot % 64)
	}
}

// word is where the bit of a slot is.
func (b *slotSet) word(slot int32) *uint64 {
	if slot < inlineSlots {
		return &b.inline[slot/64]
	}
	return &b.more[(slot-inlineSlots)/64]
}

// all yields the slots in the set.
func (b *slotSet) all() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if !b.any || b.first != none && !yield(b.first) || !b.many {
			return
		}
		for word := b.low / 64; word <= b.high/64; word++ {
			for w := *b.word(word * 64); w != 0; w &= w - 1 {
				if !yield(word*64 + int32(bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}
