package recording

import (
	"fmt"
	"strconv"

	"github.com/trunklb/trunk/peer"
)

// field is one number of a peer's state under its recorded name.
type field struct {
	name string
	get  func(*peer.State) int64
	set  func(*peer.State, int64)
	// unsigned: the number is written as one of 64 bits without a sign.
	unsigned bool
}

func signed(name string, at func(*peer.State) *int64) field {
	return field{name: name, get: func(s *peer.State) int64 { return *at(s) }, set: func(s *peer.State, n int64) { *at(s) = n }}
}

var stateFields = []field{
	signed("cw", func(s *peer.State) *int64 { return &s.CurrentWeight }),
	signed("ew", func(s *peer.State) *int64 { return &s.EffectiveWeight }),
	signed("conns", func(s *peer.State) *int64 { return &s.Conns }),
	signed("fails", func(s *peer.State) *int64 { return &s.Fails }),
	signed("accessed", func(s *peer.State) *int64 { return &s.Accessed }),
	signed("checked", func(s *peer.State) *int64 { return &s.Checked }),
	signed("header_time", func(s *peer.State) *int64 { return &s.Times.Header }),
	signed("response_time", func(s *peer.State) *int64 { return &s.Times.Response }),
	signed("connect_time", func(s *peer.State) *int64 { return &s.Times.Connect }),
	signed("inflight_time", func(s *peer.State) *int64 { return &s.Times.Inflight }),
	{name: "inflight_last", unsigned: true,
		get: func(s *peer.State) int64 { return int64(s.Times.InflightLast) },
		set: func(s *peer.State, n int64) { s.Times.InflightLast = uint64(n) }},
	signed("inflight_changed", func(s *peer.State) *int64 { return &s.Times.InflightChanged }),
	signed("inflight_reqs", func(s *peer.State) *int64 { return &s.Times.InflightReqs }),
}

// fieldsByName has nginx's other name too: in stream the header time is the time
// to the first byte.
var fieldsByName = func() map[string]*field {
	m := map[string]*field{}
	for i := range stateFields {
		m[stateFields[i].name] = &stateFields[i]
	}
	m["first_byte_time"] = m["header_time"]
	return m
}()

// number is a recorded number; one beyond the signed range is held by its bits.
type number int64

// UnmarshalJSON reads a signed or an unsigned 64-bit number.
func (n *number) UnmarshalJSON(data []byte) error {
	if v, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*n = number(v)
		return nil
	}
	v, err := strconv.ParseUint(string(data), 10, 64)
	*n = number(v)
	return err
}

// changes are the changed fields of the changed peers, by "group/index".
type changes map[string]map[string]number

// newChanges are those of a recording's beginning.
func newChanges(list []change) changes {
	c := changes{}
	for i := range list {
		to := map[string]number{}
		for k := range stateFields {
			if f := &stateFields[k]; f.get(&list[i].Was) != f.get(&list[i].Is) {
				to[f.name] = number(f.get(&list[i].Is))
			}
		}
		c[at{list[i].Group, list[i].Index}.String()] = to
	}
	return c
}

// at is a peer by its group and its index in it.
type at struct{ group, index int }

func (p at) String() string { return fmt.Sprintf("%d/%d", p.group, p.index) }
