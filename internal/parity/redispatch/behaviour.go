//go:build linux

package redispatch

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// behaviour is what a backend does with one request.
type behaviour struct {
	name   string
	status int           // of the answer, where one is given
	delay  time.Duration // before the answer or, for ok_close and ok_rst, after it
}

// The pauses that the recorded backends made.
const (
	resetDelay    = 20 * time.Millisecond  // reset_on_accept: the request is in the socket by then
	partialDelay  = 30 * time.Millisecond  // between a part of a header and its end
	bodyPartDelay = 60 * time.Millisecond  // between a part of a body and its end
	earlyDelay    = 400 * time.Millisecond // early_response: until the close
)

// arguments says what follows the name of a behaviour after a colon: s is a
// status, d a delay in milliseconds.
var arguments = map[string]string{
	"ok": "", "status": "s", "slow_header": "d", "slow_status": "sd", "slow_close": "d",
	"refuse": "", "connect_hang": "", "reset_on_accept": "",
	"close_before_response": "", "reset_before_response": "",
	"close_mid_header": "", "reset_mid_header": "",
	"invalid_header": "", "garbage_status": "", "hang": "",
	"close_mid_body": "", "reset_mid_body": "", "close_mid_chunked": "",
	"early_response": "", "stall_body": "",
	"ok_close": "d", "ok_rst": "d", "ok_conn_close": "",
}

func parseBehaviour(text string) (behaviour, error) {
	parts := strings.Split(text, ":")
	want, known := arguments[parts[0]]
	if !known || len(parts)-1 != len(want) {
		return behaviour{}, fmt.Errorf("unknown behaviour %q", text)
	}
	b := behaviour{name: parts[0], status: http.StatusOK}
	for i, arg := range parts[1:] {
		n, err := strconv.Atoi(arg)
		if err != nil {
			return behaviour{}, fmt.Errorf("unknown behaviour %q: %w", text, err)
		}
		if want[i] == 's' {
			b.status = n
		} else {
			b.delay = time.Duration(n) * time.Millisecond
		}
	}
	if b.name == "early_response" {
		b.status = http.StatusInternalServerError
	}
	return b, nil
}

func parseBehaviours(queue []string) ([]behaviour, error) {
	all := make([]behaviour, 0, len(queue))
	for _, text := range queue {
		b, err := parseBehaviour(text)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}
