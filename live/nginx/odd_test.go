//go:build unix

package nginx

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/trunklb/trunk/internal/rawpeer"
)

// What nginx makes of answers that are no HTTP: balancer has a test of the same answers.
func TestOddAnswers(t *testing.T) {
	version, err := exec.Command(binary(t), "-v").CombinedOutput()
	require.NoError(t, err)
	old := strings.Contains(string(version), "nginx/1.22.")
	for _, odd := range rawpeer.Odds {
		t.Run(odd.Name, func(t *testing.T) {
			want := odd.Nginx
			if old && odd.Nginx122 != "" {
				want = odd.Nginx122
			}
			require.Equal(t, want, kindAtNginx(t, odd))
		})
	}
}

// kindAtNginx returns the kind of an answer that nginx passes on, or else its status.
func kindAtNginx(t *testing.T, odd rawpeer.Odd) string {
	var status string
	for _, kind := range []string{"invalid_header", "error"} {
		a := rawpeer.Start(t, rawpeer.Config{Proto: rawpeer.H1, Do: func(r *rawpeer.Request) {
			r.Raw(odd.Bytes)
			r.Cut()
		}})
		b := rawpeer.Start(t, rawpeer.Config{Proto: rawpeer.H1, Do: func(r *rawpeer.Request) { r.Answer(http.StatusNoContent, "") }})
		dir := tempDir(t)
		nginx := over(t, start(t, dir, configure(t, "http", settings{Dir: dir,
			Block: "server " + a.Addr() + "; server " + b.Addr() + ";", Rules: "proxy_next_upstream " + kind + ";"})))
		r, err := http.NewRequest("GET", "http://client.example/", nil)
		require.NoError(t, err)
		resp, err := nginx.RoundTrip(r)
		if err != nil {
			return "broken"
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if status = resp.Header.Get("X-Answered"); strings.Contains(status, ",") {
			return kind
		}
	}
	return status
}
