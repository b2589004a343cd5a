package recording_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/peer/recording"
)

// BenchmarkWriter is a request, get and free, that is written.
func BenchmarkWriter(b *testing.B) {
	for _, n := range []int{3, 100, 1000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			servers := make([]peer.Server, n)
			for i := range servers {
				servers[i] = peer.Server{Addr: fmt.Sprint(i), Weight: 1 + i%3}
			}
			now := 1_700_000_000 * time.Second
			up, err := peer.New(servers, nil, &peer.Options{Record: recording.NewWriter(io.Discard, nil),
				Clock: func() time.Duration { now += time.Millisecond; return now }})
			require.NoError(b, err)
			r := &peer.Request{}
			b.ReportAllocs()
			for b.Loop() {
				if up.Begin(r) != nil || up.Get(r) != nil || up.Free(r, peer.OK) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}
