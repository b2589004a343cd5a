package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// operation is one line of a recording, with all that was given and is expected.
type operation struct {
	Op   string `json:"op"`
	ID   int64  `json:"id"`
	Over int64  `json:"over"`

	// time; up to version 1 it was since the Unix epoch
	At  *time.Time `json:"at"`
	Sec int64      `json:"sec"`
	MS  int64      `json:"ms"`
	NS  int64      `json:"ns"`

	// what the request brings; nil: as before
	Key       *text   `json:"key"`
	IP        *string `json:"ip"`
	Hint      *text   `json:"hint"`
	Stream    *bool   `json:"stream"`
	BackupTry *bool   `json:"backup_try"`
	TriesCap  int     `json:"tries_cap"`
	GaveBack  int     `json:"gave_back"`

	Draws []uint32 `json:"draws"`
	Peer  *[2]int  `json:"peer"`
	What  string   `json:"what"`
	State string   `json:"state"`
	Freed bool     `json:"freed"`
	Tries int      `json:"tries"`
	// Told is false where the balancer is not to know of the header; nil: true.
	Told    *bool    `json:"notify"`
	Servers []server `json:"servers"`
	Changed changes  `json:"changed"`

	// These do not concern the choice of peers.
	HeaderTime        json.RawMessage `json:"header_time"`
	ResponseTime      json.RawMessage `json:"response_time"`
	Cookies           json.RawMessage `json:"cookies"`
	Args              json.RawMessage `json:"args"`
	SetCookie         json.RawMessage `json:"set_cookie"`
	UpstreamSetCookie json.RawMessage `json:"upstream_set_cookie"`
	Want              json.RawMessage `json:"want"`
}

// clock is the time that a time operation sets.
func (op *operation) clock(version int) (time.Duration, error) {
	switch {
	case version < 2:
		return time.Duration(op.MS)*time.Millisecond + time.Duration(op.NS), nil
	case op.At == nil || !wallTime(time.Duration(op.At.UnixNano())).Equal(*op.At):
		return 0, errors.New("at is missing or out of range")
	}
	return time.Duration(op.At.UnixNano()), nil
}

// errCut says that a recording has no end.
var errCut = errors.New("the recording is cut off")

// reader reads recordings operation by operation: they may be larger than the
// memory.
type reader struct{ *json.Decoder }

func newReader(r io.Reader) reader {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	return reader{d}
}

// next reads the next recording: begin is called with its header, each with its
// operations. io.EOF if there is none; errCut after the last whole operation of
// one without an end. end is why it says that it ended early.
func (r reader) next(begin func(*header) error, each func(*operation) error) (end string, err error) {
	if err := r.delimiter('{'); err != nil {
		return "", err
	}
	raw := map[string]json.RawMessage{}
	begun := false
	for r.More() {
		name, err := r.Token()
		if err != nil {
			return "", cut(err)
		}
		if name != "ops" || begun {
			var value json.RawMessage
			if err := r.Decode(&value); err != nil {
				return "", cut(err)
			}
			raw[name.(string)] = value // it is one: names are
			continue
		}
		begun = true
		if err := r.delimiter('['); err != nil {
			return "", cut(err)
		}
		h, err := newHeaderOf(raw)
		if err == nil {
			err = begin(h)
		}
		if err == nil {
			err = r.operations(each)
		}
		if err != nil {
			return "", err
		}
	}
	if err := r.delimiter('}'); err != nil {
		return "", cut(err)
	}
	if !begun {
		return "", errors.New("a recording without operations")
	}
	h, err := newHeaderOf(raw)
	if err != nil {
		return "", err
	}
	return h.End, nil
}

// operations reads the rest of an array.
func (r reader) operations(each func(*operation) error) error {
	for r.More() {
		op := &operation{}
		if err := r.Decode(op); err != nil {
			return cut(err)
		}
		if err := each(op); err != nil {
			return err
		}
	}
	return cut(r.delimiter(']'))
}

// delimiter reads a bracket.
func (r reader) delimiter(want json.Delim) error {
	got, err := r.Token()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%v where %v should be", got, want)
	}
	return nil
}

// cut makes the end of the file in the middle of a recording errCut.
func cut(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// newHeaderOf reads the fields of a header.
func newHeaderOf(raw map[string]json.RawMessage) (*header, error) {
	all, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	h := &header{}
	if err := strictly(all, h); err != nil {
		return nil, err
	}
	if h.Version < 0 || h.Version > version {
		return nil, fmt.Errorf("version %d: this library reads up to %d", h.Version, version)
	}
	return h, nil
}
