package balancer

import "github.com/trunklb/trunk/peer/recording"

// newRecorder writes to Config.Record.
func newRecorder(c *Config) *recording.Writer {
	return recording.NewWriter(c.Record, &recording.WriterOptions{Name: c.Name, Redact: c.Redact})
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
