package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
)

// abc are three servers.
var abc = []peer.Server{{Addr: "a", Weight: 5}, {Addr: "b"}, {Addr: "c"}}

// recorded is an upstream on a clock that stands, and that is recorded.
func recorded(t *testing.T, to io.Writer, m peer.Method) (*peer.Upstream, *recording.Writer) {
	w := recording.NewWriter(to, &recording.WriterOptions{Name: "backend"})
	up, err := peer.New(abc, m, &peer.Options{Record: w, Clock: func() time.Duration { return 1_700_000_000_250 * time.Millisecond }})
	require.NoError(t, err)
	return up, w
}

func request(t require.TestingT, up *peer.Upstream, r *peer.Request, o peer.Outcome) string {
	require.NoError(t, up.Begin(r))
	require.NoError(t, up.Get(r))
	p, _ := up.Peer(r)
	require.NoError(t, up.Free(r, o))
	return p.Server.Addr
}

func TestTheFormat(t *testing.T) {
	var file bytes.Buffer
	up, w := recorded(t, &file, nil)
	r := &peer.Request{Key: "/é", Hint: "x"}
	require.Equal(t, "a", request(t, up, r, peer.Failed))
	require.NoError(t, up.Update([]peer.Server{{Addr: "a", Weight: 5}, {Addr: "c", FailTimeout: peer.NoFailTimeout}}))
	r.Hint = ""
	require.Equal(t, "c", request(t, up, r, peer.Abandoned))
	require.NoError(t, w.Close())
	require.Equal(t, `{"version":2,"name":"backend","directives":[],"servers":[`+
		`{"group":0,"name":"a","server":"a","weight":5,"max_conns":0,"max_fails":1,"fail_timeout":10,"sid":"0cc175b9c0f1b6a831c399e269772661"},`+
		`{"group":0,"name":"b","server":"b","weight":1,"max_conns":0,"max_fails":1,"fail_timeout":10,"sid":"92eb5ffee6ae2fec3ad71c777531578f"},`+
		`{"group":0,"name":"c","server":"c","weight":1,"max_conns":0,"max_fails":1,"fail_timeout":10,"sid":"4a8a08f09d37b73795649038408b5f33"}],"ops":[
{"op":"req","id":1,"key":"/\u00c3\u00a9","hint":"x","tries":3},
{"op":"time","at":"2023-11-14T22:13:20.25Z"},
{"op":"get","id":1,"peer":[0,0],"tries":3,"changed":{"0/0":{"cw":-2,"conns":1,"checked":1700000000},"0/1":{"cw":1},"0/2":{"cw":1}}},
{"op":"next","id":1,"state":"FAILED","freed":true,"tries":2,"changed":{"0/0":{"ew":0,"conns":0,"fails":1,"accessed":1700000000}}},
{"op":"update","servers":[`+
		`{"group":0,"name":"a","server":"a","weight":5,"max_conns":0,"max_fails":1,"fail_timeout":10,"sid":"0cc175b9c0f1b6a831c399e269772661"},`+
		`{"group":0,"name":"c","server":"c","weight":1,"max_conns":0,"max_fails":1,"fail_timeout":0,"sid":"4a8a08f09d37b73795649038408b5f33"}],`+
		`"changed":{"0/0":{"cw":-1,"ew":0,"fails":1,"accessed":1700000000,"checked":1700000000}}},
{"op":"req","id":2,"key":"/\u00c3\u00a9","over":1,"tries":2},
{"op":"get","id":2,"peer":[0,1],"tries":2,"changed":{"0/1":{"conns":1,"checked":1700000000}}},
{"op":"fin","id":2,"state":"ABANDONED","freed":true,"response_time":0,"tries":1,"changed":{"0/1":{"conns":0}}}
]}
`, file.String())
}

// A recording that was cut off anywhere is good up to its last whole operation.
func TestCutAnywhere(t *testing.T) {
	var file bytes.Buffer
	s, w := newStage(t, 7, methods[2], &file)
	s.play(25)
	require.NoError(t, w.Close())
	whole := file.Bytes()
	full, _ := replayed(t, whole)
	begin := bytes.IndexByte(whole, '\n')
	last, step := 0, 1
	if testing.Short() {
		step = 7
	}
	for n := 1 + (len(whole)-2)%step; n < len(whole); n += step { // the last cut is at len-1
		result, err := recording.Replay(bytes.NewReader(whole[:n]), nil, nil)
		if n < begin {
			require.Error(t, err, "there is no upstream yet")
			continue
		}
		require.NoError(t, err, "cut at %d", n)
		require.GreaterOrEqual(t, result.Operations, last)
		last = result.Operations
		require.Equal(t, n < len(whole)-1, result.Cut, "cut at %d", n) // but for the last line feed
	}
	require.Equal(t, full.Operations, last)
}

// broken is a writer that fails, or panics, after so many bytes.
type broken struct {
	bytes.Buffer
	room  int
	panic bool
}

var errBroken = errors.New("no space left")

func (b *broken) Write(p []byte) (int, error) {
	n := min(len(p), b.room)
	b.Buffer.Write(p[:n])
	if b.room -= n; n == len(p) {
		return n, nil
	}
	if b.panic {
		panic(errBroken)
	}
	return n, errBroken
}

// A writer that fails ends the recording, and nothing else.
func TestBrokenWriter(t *testing.T) {
	for _, room := range []int{0, 500, 700, 1000} {
		for _, panics := range []bool{false, true} {
			t.Run(fmt.Sprint(room, panics), func(t *testing.T) {
				to := &broken{room: room, panic: panics}
				up, w := recorded(t, to, nil)
				if room == 0 {
					require.ErrorContains(t, w.Flush(), errBroken.Error(), "at once")
				}
				picks := ""
				for range 14 {
					picks += request(t, up, &peer.Request{}, peer.OK)
				}
				require.Equal(t, strings.Repeat("aabacaa", 2), picks)
				require.ErrorContains(t, w.Flush(), errBroken.Error())
				require.ErrorContains(t, w.Close(), errBroken.Error())
				require.ErrorContains(t, w.Close(), errBroken.Error())
				if room > 600 {
					result, err := recording.Replay(&to.Buffer, nil, nil)
					require.NoError(t, err)
					require.True(t, result.Cut)
				}
			})
		}
	}
}

// The end of a recording is written, too.
func TestWriterThatBreaksAtTheEnd(t *testing.T) {
	for _, panics := range []bool{false, true} {
		to := &broken{room: 1 << 20, panic: panics}
		up, w := recorded(t, to, nil)
		request(t, up, &peer.Request{}, peer.OK)
		require.NoError(t, w.Flush())
		to.room = 0
		require.ErrorContains(t, w.Close(), errBroken.Error())
		require.ErrorContains(t, w.Close(), errBroken.Error())
	}
}

// slow is a writer that waits when it is told to.
type slow struct {
	bytes.Buffer
	waits, goOn chan struct{}
	once        sync.Once
}

func (s *slow) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"op"`)) {
		s.once.Do(func() {
			close(s.waits)
			<-s.goOn
		})
	}
	return s.Buffer.Write(p)
}

// Where operations come faster than they are written the recording ends: nobody
// waits, but for the one who writes, and what there was is there.
func TestSlowWriter(t *testing.T) {
	to := &slow{waits: make(chan struct{}), goOn: make(chan struct{})}
	up, w := recorded(t, to, nil)
	var all sync.WaitGroup
	all.Go(func() { request(t, up, &peer.Request{}, peer.OK) })
	<-to.waits
	for range 40_000 {
		request(t, up, &peer.Request{}, peer.OK)
	}
	close(to.goOn)
	all.Wait()
	require.ErrorIs(t, w.Flush(), peer.ErrRecordingFull)
	require.ErrorIs(t, w.Close(), peer.ErrRecordingFull)
	result, err := recording.Replay(&to.Buffer, nil, nil)
	require.NoError(t, err)
	require.False(t, result.Cut)
	require.Equal(t, peer.ErrRecordingFull.Error(), result.End)
	require.Greater(t, result.Operations, 10_000)
	require.Less(t, result.Operations, 120_000)
	for range 7 {
		request(t, up, &peer.Request{}, peer.OK)
	}
}

// A writer that itself uses the upstream comes to an end.
type user struct {
	bytes.Buffer
	up *peer.Upstream
}

func (u *user) Write(p []byte) (int, error) {
	if u.up != nil {
		r := &peer.Request{}
		if u.up.Begin(r) == nil && u.up.Get(r) == nil {
			_ = u.up.Free(r, peer.OK)
		}
	}
	return u.Buffer.Write(p)
}

func TestWriterThatUsesTheUpstream(t *testing.T) {
	to := &user{}
	up, w := recorded(t, to, nil)
	to.up = up
	for range 10 {
		request(t, up, &peer.Request{}, peer.OK)
	}
	to.up = nil
	require.NoError(t, w.Close())
	result, err := recording.Replay(&to.Buffer, nil, nil)
	require.NoError(t, err)
	require.Greater(t, result.Gets, 20)
}

func TestCloseEndsTheRecordingAlone(t *testing.T) {
	var file bytes.Buffer
	up, w := recorded(t, &file, nil)
	request(t, up, &peer.Request{}, peer.OK)
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	n := file.Len()
	request(t, up, &peer.Request{}, peer.OK)
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	require.Equal(t, n, file.Len())
	result, _ := replayed(t, file.Bytes())
	require.Equal(t, recording.Result{Recordings: 1, Operations: 4, Gets: 1}, result)

	_, err := peer.New(abc, nil, &peer.Options{Record: w})
	require.ErrorIs(t, err, recording.ErrInUse)
	require.NoError(t, recording.NewWriter(&file, nil).Close(), "never used")
}

// Goroutines share what is recorded; the order under the lock is the truth.
func TestConcurrentRecording(t *testing.T) {
	for i, m := range methods {
		t.Run(fmt.Sprint(i, " ", m), func(t *testing.T) {
			t.Parallel()
			var file bytes.Buffer
			var now atomic.Int64
			now.Store(int64(1_700_000_000 * time.Second))
			w := recording.NewWriter(&file, nil)
			up, err := peer.New(abc, m, &peer.Options{Record: w, Clock: func() time.Duration {
				return time.Duration(now.Add(int64(50 * time.Millisecond)))
			}})
			require.NoError(t, err)
			var all sync.WaitGroup
			for g := range 8 {
				all.Go(func() {
					r := &peer.Request{Key: fmt.Sprint("/", g)}
					for n := range 60 {
						if g == 0 && n%10 == 0 {
							_ = up.Update(abc[:2+n/10%2])
						}
						use(t, up, r, g+n)
					}
				})
			}
			all.Wait()
			require.NoError(t, w.Close())
			result, _ := replayed(t, file.Bytes())
			require.GreaterOrEqual(t, result.Gets, 8*60)
		})
	}
}

// use makes a request with retries, whose outcomes go by a number.
func use(t *testing.T, up *peer.Upstream, r *peer.Request, n int) {
	if err := up.Begin(r); err != nil {
		t.Error(err)
	}
	for up.Get(r) == nil {
		o := peer.Outcome(n % 4)
		if n++; up.Header(r) != nil || up.Free(r, o) != nil {
			t.Error("a request that holds a peer was refused")
		}
		if o == peer.OK {
			return
		}
	}
}
