package peer

// bits is a set of slots. Up to inlineSlots need no memory of their own.
type bits struct {
	inline [inlineSlots / 64]uint64
	more   []uint64
}

const inlineSlots = 128

// reset empties the set and makes room for n slots. It allocates only for more
// than inlineSlots, and only the first time.
func (b *bits) reset(n int) {
	b.inline = [len(b.inline)]uint64{}
	words := max(0, n-inlineSlots+63) / 64
	if words > cap(b.more) {
		b.more = make([]uint64, words)
	}
	b.more = b.more[:words]
	clear(b.more)
}

func (b *bits) word(slot int32) *uint64 {
	if slot < inlineSlots {
		return &b.inline[slot/64]
	}
	return &b.more[(slot-inlineSlots)/64]
}

func (b *bits) has(slot int32) bool { return *b.word(slot)&(1<<(slot%64)) != 0 }
func (b *bits) add(slot int32)      { *b.word(slot) |= 1 << (slot % 64) }
func (b *bits) clear()              { b.inline = [len(b.inline)]uint64{}; clear(b.more) }
