package parity

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sound is a recording without a fault: a retry under random, with a sticky
// cookie. Line breaks are for the reader.
const sound = `{"name":"sound","proto":"http","directives":["random","sticky cookie srv"],"note":"",
"servers":[
{"group":0,"name":"127.0.0.1:9001","server":"a","weight":1,"max_conns":0,"max_fails":1,"fail_timeout":10,"sid":"a"},
{"group":0,"name":"127.0.0.1:9002","server":"b","weight":1,"max_conns":0,"max_fails":1,"fail_timeout":10,"sid":"b"}],
"ops":[
{"op":"time","sec":1000,"ms":1000007},
{"op":"req","id":1,"key":"\u00e9","tries":2},
{"op":"get","id":1,"draws":[1],"peer":[0,1],"tries":2,"set_cookie":["srv=b"],"changed":{"0/1":{"conns":1,"checked":1000}}},
{"op":"next","id":1,"state":"FAILED","freed":true,"tries":1,"changed":{"0/1":{"conns":0,"fails":1,"ew":0,"accessed":1000}}},
{"op":"get","id":1,"draws":[3,4],"peer":[0,0],"tries":1,"set_cookie":["srv=a"],"changed":{"0/0":{"conns":1,"checked":1000}}},
{"op":"fin","id":1,"state":"OK","freed":true,"response_time":0,"tries":0,"changed":{"0/0":{"conns":0,"fails":0}}},
{"op":"sessions","want":[]}]}
`

// write makes a recording of some text, and returns its path.
func write(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "x.jsonl.gz")
	f, err := os.Create(path)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	return path
}

// replayAll loads and replays a file, up to the first error.
func replayAll(path string) error {
	for s, err := range Scenarios(path) {
		if err != nil {
			return err
		}
		if err := Replay(s, Literal); err != nil {
			return err
		}
	}
	return nil
}

func TestReplayOfASoundRecording(t *testing.T) {
	path := write(t, sound+sound)
	require.NoError(t, replayAll(path))

	n := 0
	for s, err := range Scenarios(path) {
		require.NoError(t, err)
		require.Equal(t, ByteString("\xe9"), s.Ops[1].Key)
		n++
	}
	require.Equal(t, 2, n)
}

// learned is a recording of a session that the request itself creates, in its argument r:
// sticky learn takes any variable.
const learned = `{"name":"learned","proto":"http","directives":["sticky learn create=$arg_r lookup=$arg_s zone=z:1m"],"note":"",
"servers":[
{"group":0,"name":"127.0.0.1:9001","server":"a","weight":1,"max_conns":0,"max_fails":1,"fail_timeout":10,"sid":"a"},
{"group":0,"name":"127.0.0.1:9002","server":"b","weight":1,"max_conns":0,"max_fails":1,"fail_timeout":10,"sid":"b"}],
"ops":[
{"op":"time","sec":1000,"ms":1000007},
{"op":"req","id":1,"args":"r=x","tries":2},
{"op":"get","id":1,"peer":[0,0],"tries":2,"changed":{"0/0":{"conns":1,"checked":1000,"cw":-1},"0/1":{"cw":1}}},
{"op":"fin","id":1,"state":"OK","freed":true,"response_time":0,"tries":1,"changed":{"0/0":{"conns":0}}},
{"op":"sessions","want":[["9dd4e461268c8034f5c8564e155c67a6","a"]]},
{"op":"req","id":2,"args":"s=x","tries":2},
{"op":"get","id":2,"peer":[0,0],"tries":2,"changed":{"0/0":{"conns":1}}},
{"op":"fin","id":2,"state":"OK","freed":true,"response_time":0,"tries":1,"changed":{"0/0":{"conns":0}}}]}
`

func TestSessionsAreLearnedFromAnyVariable(t *testing.T) {
	for s, err := range Scenarios(write(t, learned)) {
		require.NoError(t, err)
		require.NoError(t, Replay(s, Literal), "the model")
		require.NoError(t, Replay(s, Product), "the product")
	}
}

// A replayer that overlooks something proves nothing: here each expectation of
// the sound recording is falsified in turn.
func TestReplayFindsTheDifference(t *testing.T) {
	tests := []struct{ given, instead, want string }{
		{`"key":"\u00e9","tries":2`, `"tries":3`, "sound: op 1: req id=1: tries: want 3, got 2"},
		{`"peer":[0,1]`, `"peer":[0,0]`, "sound: op 2: get id=1: peer: want 0/0, got 0/1"},
		{`"peer":[0,1]`, `"peer":null`, "peer: want none (BUSY), got 0/1"},
		{`"peer":[0,0],"tries":1`, `"peer":[0,0],"tries":2`, "op 4: get id=1: tries: want 2, got 1"},
		{`["srv=b"]`, `["srv=a"]`, "set_cookie: [0]: want srv=a, got srv=b"},
		{`"set_cookie":["srv=b"],`, ``, "set_cookie: length: want 0, got 1"},
		{`"draws":[1]`, `"draws":[1,1]`, "op 2: get id=1: number of draws: want 2, got 1"},
		{`"draws":[3,4]`, `"draws":[3]`, "op 4: get id=1: number of draws: want 1, got 2"},
		{`"freed":true,"tries":1`, `"freed":false,"tries":1`, "op 3: next id=1: freed: want false, got true"},
		{`"freed":true,"tries":1`, `"freed":true,"tries":2`, "op 3: next id=1: tries: want 2, got 1"},
		{`"freed":true,"resp`, `"freed":false,"resp`, "op 5: fin id=1: freed: want false, got true"},
		{`"tries":0,`, `"tries":1,`, "op 5: fin id=1: tries: want 1, got 0"},
		{`"want":[]`, `"want":[["id","a"]]`, "op 6: sessions id=0: sessions: length: want 1, got 0"},
		{`"fails":1,`, ``, "op 3: next id=1: peer 0/1: fails: want 0, got 1"},
		{`"op":"sessions"`, `"op":"restart"`, "op 6: restart id=0: no such operation"},
		{`"op":"fin","id":1`, `"op":"fin","id":2`, "no such request"},
		{`"state":"FAILED"`, `"state":"LOST"`, "no such state: LOST"},
		{`"random"`, `"random three"`, `sound: "random three": no such directive`},
	}
	for _, f := range fields { // of the peer that the last free did not touch
		tests = append(tests, struct{ given, instead, want string }{
			`{"0/0":{"conns":0,"fails":0}}`,
			`{"0/0":{"conns":0,"fails":0},"0/1":{"` + f.name + `":77}}`,
			"op 5: fin id=1: peer 0/1: " + f.name + ": want 77, got ",
		})
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			require.Contains(t, sound, test.given)
			err := replayAll(write(t, strings.Replace(sound, test.given, test.instead, 1)))
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestScenariosRefuse(t *testing.T) {
	tests := []struct{ name, given, instead, want string }{
		{"two clocks", `"ms":1000007`, `"ms":1001007`, "op 0: the clocks differ: sec 1000, ms 1001007"},
		{"a field of an op that nobody checks", `"tries":0,`, `"tries":0,"colour":1,`, "colour"},
		{"a field of a peer that nobody knows", `"ew":0`, `"ww":0`, `op 3: peer 0/1: no field "ww"`},
		{"a peer that is not there", `{"0/0":{"conns":0`, `{"0/7":{"conns":0`, "op 5: no peer 0/7"},
		{"a character that is no byte", `\u00e9`, `\u0100`, "character U+0100"},
		{"half a number", `"ew":0`, `"ew":0.5`, "0.5"},
		{"a triple for a pair", `[0,1]`, `[0,1,2]`, "3 members"},
		{"rubbish behind it", "]}\n", "]}\n]", "scenario 2"},
		{"no operations", sound[strings.Index(sound, `"ops"`):], `"ops":[]}`, "no servers or no operations"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Contains(t, sound, test.given)
			path := write(t, strings.Replace(sound, test.given, test.instead, 1))
			require.ErrorContains(t, replayAll(path), test.want)
		})
	}
	t.Run("a file that is cut off", func(t *testing.T) {
		path := write(t, sound)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data[:len(data)-20], 0o600))
		require.Error(t, replayAll(path))
	})
}

func TestAnUnsignedNumberKeepsItsBits(t *testing.T) {
	var n Int
	require.NoError(t, n.UnmarshalJSON([]byte("18446744073709551615")))
	require.Equal(t, Int(-1), n)
}
