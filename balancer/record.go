package balancer

import (
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
	"github.com/trunklb/trunk/roundrobin"
)

// newRecorder writes to Config.Record. It is told the method, for what peer gets is
// wrapped.
func newRecorder(c *Config) *recording.Writer {
	var m peer.Method = roundrobin.New()
	if c.Method != nil {
		m = c.Method
	}
	return recording.NewWriter(c.Record, &recording.WriterOptions{Name: c.Name, Method: m, Redact: c.Redact})
}

// FlushRecord writes what of Config.Record is still in memory, and returns why the
// recording has ended, if it has: a write that failed, or more than it could hold.
// The upstream goes on all the same. nil where nothing is recorded.
func (u *Upstream) FlushRecord() error {
	if u.recorder == nil {
		return nil
	}
	return u.recorder.Flush()
}
