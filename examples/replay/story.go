package main

import (
	"io"
	"time"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
)

// story plays the night twice and records it: as nginx has it, and with the
// weight coming back by time and the debt forgiven.
func story(to io.Writer) error {
	if err := night(to, "the night", peer.Policy{}); err != nil {
		return err
	}
	return night(to, "the same night, with Recovery and Forgive", peer.Policy{
		Recovery: 30 * time.Second, Forgive: true,
	})
}

// evening is 23:00 on some day.
const evening = 1_700_002_800 * time.Second

// night is the story: a has weight 10 and max_fails 2, b has weight 1. At 23:00 a
// fails twice, and a request comes while it is out. At 6:00 all is well, and
// requests come, one a second.
func night(to io.Writer, name string, policy peer.Policy) error {
	now := evening
	w := recording.NewWriter(to, &recording.WriterOptions{Name: name})
	up, err := peer.New([]peer.Server{{Addr: "a", Weight: 10, MaxFails: 2}, {Addr: "b"}}, nil, &peer.Options{
		Clock: func() time.Duration { return now }, Policy: policy, Record: w,
	})
	if err != nil {
		return err
	}
	request := func(at time.Duration, o peer.Outcome) error {
		now = evening + at
		r := &peer.Request{}
		if err := up.Begin(r); err != nil {
			return err
		}
		if err := up.Get(r); err != nil {
			return err
		}
		return up.Free(r, o)
	}
	for at, o := range []peer.Outcome{peer.Failed, peer.Failed, peer.OK} {
		if err := request(time.Duration(at)*time.Second, o); err != nil {
			return err
		}
	}
	for at := range 12 {
		if err := request(7*time.Hour+time.Duration(at)*time.Second, peer.OK); err != nil {
			return err
		}
	}
	return w.Close()
}
