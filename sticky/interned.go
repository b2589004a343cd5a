package sticky

import "strings"

// interned are texts of which each is kept once, however often it is added,
// under a number. There are about as many sids as peers, and many more sessions.
type interned struct {
	number map[string]uint32
	texts  []counted
	free   []uint32
}

// counted is a text and how often it has been added.
type counted struct {
	text string
	uses uint32
}

// text returns the text of a number.
func (n *interned) text(i uint32) string { return n.texts[i].text }

// add returns the number of a text. Each add is to be answered by a drop.
func (n *interned) add(text string) uint32 {
	i, ok := n.number[text]
	if !ok {
		if last := len(n.free) - 1; last >= 0 {
			i, n.free = n.free[last], n.free[:last]
		} else {
			i = uint32(len(n.texts))
			n.texts = append(n.texts, counted{})
		}
		text = strings.Clone(text) // which may be a part of something large
		n.texts[i].text = text
		n.number[text] = i
	}
	n.texts[i].uses++
	return i
}

// drop takes one use of a number back. With the last one the text goes.
func (n *interned) drop(i uint32) {
	c := &n.texts[i]
	if c.uses--; c.uses == 0 {
		delete(n.number, c.text)
		c.text = ""
		n.free = append(n.free, i)
	}
}
