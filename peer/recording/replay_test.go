package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/internal/glue"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
)

// sevenRequests is a recording of a a b a c a a.
func sevenRequests(t *testing.T) string {
	var file bytes.Buffer
	up, w := recorded(t, &file, nil)
	for range 7 {
		request(t, up, &peer.Request{}, peer.OK)
	}
	require.NoError(t, w.Close())
	return file.String()
}

// What does not come out as recorded is told to the point.
func TestTheFirstDifference(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"peer", `"id":3,"peer":[0,1]`, `"id":3,"peer":[0,2]`,
			`trunk: recording "backend": operation 8 (get, request 3): peer: recorded 0/2, replayed 0/1
round robin, try 1 (3 left): b, first of equal current weights
  a weight=5: conns 0, cw -4+5=1
  b weight=1: conns 0, cw 2+1-7=-4  <- taken
  c weight=1: conns 0, cw 2+1=3`},
		{"none", `"id":3,"peer":[0,1]`, `"id":3,"peer":null`, `operation 8 (get, request 3): peer: recorded none, replayed 0/1`},
		{"state", `"id":3,"state":"OK","freed":true,"response_time":0,"tries":2,"changed":{"0/1":{"conns":0}}`,
			`"id":3,"state":"OK","freed":true,"response_time":0,"tries":2,"changed":{"0/1":{"cw":9,"conns":0}}`,
			`operation 9 (fin, request 3): peer 0/1: cw: recorded 9, replayed -4`},
		{"change left out", `"changed":{"0/1":{"conns":0}}`, `"changed":{}`, `operation 9 (fin, request 3): peer 0/1: conns: recorded 1, replayed 0`},
		{"tries", `"id":3,"tries":3`, `"id":3,"tries":2`, `operation 7 (req, request 3): tries: recorded 2, replayed 3`},
		{"freed", `"id":3,"state":"OK","freed":true`, `"id":3,"state":"OK"`, `operation 9 (fin, request 3): freed: recorded false, replayed true`},
		{"draws", `"id":3,"peer"`, `"id":3,"draws":[5],"peer"`, `operation 8 (get, request 3): number of draws: recorded 1, replayed 0`},
		{"start", `}],"ops"`, `}],"changed":{"0/1":{"cw":3}},"ops"`, `operation 0 (start): peer 0/1: cw: recorded 3, replayed 0`},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := sevenRequests(t)
			require.Contains(t, file, test.old)
			_, err := recording.Replay(strings.NewReader(strings.Replace(file, test.old, test.new, 1)), nil, nil)
			var d *recording.Difference
			require.ErrorAs(t, err, &d)
			require.Contains(t, err.Error(), test.want)
		})
	}
}

// What is no recording is an error that says where, never a panic.
func TestNoRecording(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"later version", `"version":2`, `"version":3`, "version 3"},
		{"no time", `"at":"2023-11-14T22:13:20.25Z"`, `"ms":5`, "at is missing"},
		{"a time that no clock says", `"at":"2023-`, `"at":"9023-`, "out of range"},
		{"unknown field", `"name":"backend"`, `"name":"backend","colour":1`, "colour"},
		{"unknown field of an operation", `{"op":"get"`, `{"op":"get","colour":1`, "colour"},
		{"unknown operation", `{"op":"get"`, `{"op":"got"`, "no such operation"},
		{"unknown request", `"id":3,"peer"`, `"id":99,"peer"`, "no request 99"},
		{"unknown state", `"OK"`, `"GOOD"`, "no such state"},
		{"unknown peer", `"0/2":`, `"0/3":`, `no peer "0/3"`},
		{"unknown peer field", `"cw"`, `"cv"`, `no field "cv"`},
		{"unknown method", `"directives":[]`, `"directives":["fair"]`, "no such method"},
		{"no directive", `"directives":[]`, `"directives":["a; b"]`, "is none"},
		{"unknown remedy", `"directives":[]`, `"directives":["ip_hash"],"remedies":{"Luck":true}`, "Luck"},
		{"unknown policy", `"directives":[]`, `"directives":[],"policy":{"Luck":true}`, "Luck"},
		{"bad policy", `"directives":[]`, `"directives":[],"policy":{"Penalty":2}`, "Penalty"},
		{"bad weight", `"weight":5`, `"weight":-5`, "Weight"},
		{"bad group", `"group":0`, `"group":2`, "no group 2"},
		{"bad time", `"fail_timeout":10`, `"fail_timeout":99999999999`, "out of range"},
		{"get twice", `{"op":"fin","id":3,"state":"OK","freed":true,"response_time":0,"tries":2,"changed":{"0/1":{"conns":0}}}`,
			`{"op":"get","id":3}`, "already holds a peer"},
		{"endless", `"id":3,"peer"`, `"id":3,"gave_back":1999999999,"peer"`, "out of range"},
		{"character", `"name":"a"`, `"name":"€"`, "U+20AC"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := sevenRequests(t)
			require.Contains(t, file, test.old)
			_, err := recording.Replay(strings.NewReader(strings.Replace(file, test.old, test.new, 1)), nil, nil)
			require.ErrorContains(t, err, test.want)
			require.False(t, errors.As(err, new(*recording.Difference)))
		})
	}
	for _, text := range []string{"", " ", "{", "{}", "[]", "null", `{"ops":[]}`, `{"ops":1}`, `{"servers":[{"name":"a"}]}`} {
		_, err := recording.Replay(strings.NewReader(text), nil, nil)
		require.Error(t, err, text)
	}
}

// A start that takes more random numbers than were recorded is a difference.
func TestTooFewNumbersForTheStart(t *testing.T) {
	file := strings.Replace(sevenRequests(t), `"servers"`, `"start_draws":[0],"servers"`, 1)
	_, err := recording.Replay(strings.NewReader(file), nil, nil)
	require.ErrorContains(t, err, "operation 0 (start): number of draws: recorded 1, replayed")
}

func TestSeveralRecordings(t *testing.T) {
	file := sevenRequests(t)
	result, err := recording.Replay(strings.NewReader(file+file), nil, nil)
	require.NoError(t, err)
	require.Equal(t, recording.Result{Recordings: 2, Operations: 44, Gets: 14}, result)
}

func TestEachMayEndTheReplay(t *testing.T) {
	enough := errors.New("enough")
	result, err := recording.Replay(strings.NewReader(sevenRequests(t)), nil, func(s *recording.Step) error {
		if s.Op == "fin" && s.Request == 2 {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 2, result.Gets)
}

// odd is a method of a user's own.
type odd struct{ peer.Method }

func (odd) Describe() peer.Description { return peer.Description{} }

// A method that the recording cannot name is to be given.
func TestAMethodOfOnesOwn(t *testing.T) {
	var file bytes.Buffer
	up, w := recorded(t, &file, odd{leastconn.New()})
	request(t, up, &peer.Request{}, peer.OK)
	require.NoError(t, w.Close())
	_, err := recording.Replay(bytes.NewReader(file.Bytes()), nil, nil)
	require.ErrorContains(t, err, "recording_test.odd")
	_, err = recording.Replay(bytes.NewReader(file.Bytes()), odd{leastconn.New()}, nil)
	require.NoError(t, err)
}

// The keys of a recording's header for a method with remedies.
func TestRemediesAreWritten(t *testing.T) {
	var file bytes.Buffer
	_, w := recorded(t, &file, hash.Method{Key: "$a b", Consistent: true, FullWalk: true, MaxPoints: 2000})
	require.NoError(t, w.Close())
	require.Contains(t, file.String(), `"directives":["hash \"$a b\" consistent"],"remedies":{"FullWalk":true,"MaxPoints":2000},`)
}

// A request that has begun in a set that is gone has that set's tries.
func TestBeginBeforeAnUpdate(t *testing.T) {
	var file bytes.Buffer
	up, w := recorded(t, &file, nil)
	r := &peer.Request{}
	require.NoError(t, up.Update([]peer.Server{{Addr: "a", Down: true}, {Addr: "b", Down: true}}))
	require.NoError(t, up.Begin(r))
	require.Zero(t, r.Tries())
	require.NoError(t, up.Update(abc))
	require.NoError(t, up.Get(r))
	require.NoError(t, up.Free(r, peer.Failed))
	up.Internal(glue.Key{}).GiveBackTry(r)
	r.Key = "/late"
	require.NoError(t, up.Get(r))
	require.Equal(t, 1, r.Tries())
	require.NoError(t, w.Close())
	result, _ := replayed(t, file.Bytes())
	require.Equal(t, 2, result.Gets)
	require.Contains(t, file.String(), `"key":"/late","gave_back":1`)
}

// FuzzReplay alters recordings: bytes choose one, and what is cut out of it, doubled,
// put in or cut off, and where. Replay may refuse the result, but not panic, and a
// recording of which only the end is missing differs in nothing.
//
// The bytes are not the recording itself, which has thousands of them: go test would
// spend a minute on making each one smaller that reaches new code.
func FuzzReplay(f *testing.F) {
	var files [][]byte
	for i, m := range methods {
		var file bytes.Buffer
		s, w := newStage(f, uint64(i), m, &file)
		s.play(30)
		require.NoError(f, w.Close())
		files = append(files, file.Bytes())
		f.Add([]byte{byte(i)})
		f.Add([]byte{byte(i), cutOff, 4, 210, 0})
		f.Add([]byte{byte(i), cutOut, 0, 100, 3, putIn, 1, 44, 2, '9', '9', double, 2, 0, 40})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		file, onlyCut := alter(files[int(data[0])%len(files)], data[1:])
		if bytes.Contains(file, []byte("consistent")) && bytes.Contains(file, []byte("000")) {
			return // a ring of millions of points is no mistake, but takes its time
		}
		_, err := recording.Replay(bytes.NewReader(file), nil, nil)
		if onlyCut {
			require.False(t, errors.As(err, new(*recording.Difference)), "%v", err)
		}
	})
}

// What alter can do.
const (
	cutOff = iota // everything from a place on
	cutOut        // some bytes
	double        // some bytes
	putIn         // other bytes in their place
	alterations
)

// alter changes a copy of a recording as edits say: of each the kind, the place in two
// bytes and a length, with putIn the bytes themselves.
func alter(file, edits []byte) (altered []byte, onlyCut bool) {
	onlyCut = true
	for len(edits) >= 4 && len(file) > 0 {
		kind := edits[0] % alterations
		from := (int(edits[1])<<8 | int(edits[2])) % len(file)
		to := min(from+int(edits[3]), len(file))
		edits = edits[4:]
		onlyCut = onlyCut && kind == cutOff
		switch kind {
		case cutOff:
			file = file[:from]
		case cutOut:
			file = slices.Concat(file[:from], file[to:])
		case double:
			file = slices.Concat(file[:to], file[from:])
		case putIn:
			n := min(to-from, len(edits))
			file = slices.Concat(file[:from], edits[:n], file[from+n:])
			edits = edits[n:]
		}
	}
	return file, onlyCut
}

func ExampleReplay() {
	var file bytes.Buffer
	w := recording.NewWriter(&file, &recording.WriterOptions{Name: "backend"})
	up, err := peer.New([]peer.Server{{Addr: "a", Weight: 5}, {Addr: "b"}, {Addr: "c"}}, nil, &peer.Options{Record: w})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		r := &peer.Request{}
		if up.Begin(r) == nil && up.Get(r) == nil {
			_ = up.Free(r, peer.OK)
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}

	result, err := recording.Replay(&file, nil, func(s *recording.Step) error {
		if s.Request == 3 && s.Decision != nil {
			fmt.Println(s.Decision)
		}
		return nil
	})
	fmt.Println(result.Gets, "gets, all as recorded:", err == nil)
	// Output:
	// round robin, try 1 (3 left): b, first of equal current weights
	//   a weight=5: conns 0, cw -4+5=1
	//   b weight=1: conns 0, cw 2+1-7=-4  <- taken
	//   c weight=1: conns 0, cw 2+1=3
	// 3 gets, all as recorded: true
}
