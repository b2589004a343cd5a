package balancer_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/internal/rawpeer"
)

// Answers that are no HTTP are classified by what has come, and not by what net/http calls
// it. What nginx makes of the same answers, live/nginx tries.
func TestOddAnswers(t *testing.T) {
	for _, odd := range rawpeer.Odds {
		t.Run(odd.Name, func(t *testing.T) {
			p := newTwoPeers(t, over{Proto: rawpeer.H1}, balancer.Config{}, rawpeer.Config{Do: func(r *rawpeer.Request) {
				r.Raw(odd.Bytes)
				if odd.Cut {
					r.Cut()
				}
			}})
			log := new(balancer.AttemptLog)
			r := p.request("GET", nil)
			resp, err := p.rt.RoundTrip(r.WithContext(balancer.WithLog(r.Context(), log)))
			if err == nil {
				resp.Body.Close()
			}
			first, got, fails := log.Attempts()[0], "", "1 0"
			if got = first.Kind.String(); got == "" {
				got, fails = strconv.Itoa(first.Status), "0 0"
			}
			require.Equal(t, odd.Trunk, got)
			require.Equal(t, fails, p.fails())
		})
	}
}
