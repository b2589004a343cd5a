package debugpage

// ring keeps the last values that were written to it. Their memory is used again.
type ring[T any] struct {
	size    int
	slots   []T
	written uint64
}

// next returns the slot to write: a new one, or the oldest with what it held.
func (r *ring[T]) next() *T {
	r.written++
	if len(r.slots) < r.size {
		var zero T
		r.slots = append(r.slots, zero)
		return &r.slots[len(r.slots)-1]
	}
	return &r.slots[(r.written-1)%uint64(r.size)]
}

// last returns what was written last; nil: nothing yet.
func (r *ring[T]) last() *T {
	if r.written == 0 {
		return nil
	}
	return &r.slots[(r.written-1)%uint64(r.size)]
}

// each calls f for all values, the oldest first.
func (r *ring[T]) each(f func(*T)) {
	n := uint64(len(r.slots))
	for i := r.written - n; i != r.written; i++ {
		f(&r.slots[i%uint64(r.size)])
	}
}
