// Package heap keeps peers in order: pairing heaps over one array of nodes. Nothing
// in it allocates but New.
package heap

// None is no peer. A heap is known by its first peer, and None is an empty heap.
const None int32 = -1

// Nodes are the peers of a group, by index. Each is in at most one heap at a time.
type Nodes []node

type node struct {
	key int64
	// child is the first of those below, next the sibling; prev is the sibling
	// before, or the parent of a first child.
	child, next, prev int32
}

// New makes the nodes of n peers.
func New(n int) Nodes { return make(Nodes, n) }

// Key returns the key with which peer i was pushed.
func (n Nodes) Key(i int32) int64 { return n[i].key }

// Before reports whether peer a comes before peer b: the larger key is first, then
// the lower index. Keys may wrap: only their difference counts.
func (n Nodes) Before(a, b int32) bool {
	d := n[a].key - n[b].key
	return d > 0 || d == 0 && a < b
}

// Push adds peer i, which is in no heap, and returns the first of the heap. O(1).
func (n Nodes) Push(first, i int32, key int64) int32 {
	n[i] = node{key, None, None, None}
	if first == None {
		return i
	}
	return n.meld(first, i)
}

// Remove takes peer i out of the heap that it is in, and returns the first of what
// remains. O(log n) amortized.
func (n Nodes) Remove(first, i int32) int32 {
	rest := n.join(n[i].child)
	if first == i {
		return rest
	}
	next, prev := n[i].next, n[i].prev
	if n[prev].child == i {
		n[prev].child = next
	} else {
		n[prev].next = next
	}
	if next != None {
		n[next].prev = prev
	}
	if rest == None {
		return first
	}
	return n.meld(first, rest)
}

// meld makes one heap of two, which are not empty.
func (n Nodes) meld(a, b int32) int32 {
	if n.Before(b, a) {
		a, b = b, a
	}
	child := n[a].child
	if child != None {
		n[child].prev = b
	}
	n[b].next, n[b].prev = child, a
	n[a].child = b
	return a
}

// join makes one heap of siblings: neighbours are melded in pairs, and then the
// pairs from the last to the first, which is what makes it O(log n).
func (n Nodes) join(first int32) int32 {
	pairs := None // the last so far, linked backwards by prev
	for first != None {
		pair, other := first, n[first].next
		first = None
		if other != None {
			first = n[other].next
			pair = n.meld(pair, other)
		}
		n[pair].prev = pairs
		pairs = pair
	}
	all := None
	for pairs != None {
		pair := pairs
		pairs = n[pair].prev
		n[pair].next, n[pair].prev = None, None
		if all == None {
			all = pair
		} else {
			all = n.meld(all, pair)
		}
	}
	return all
}
