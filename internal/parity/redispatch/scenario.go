//go:build linux

package redispatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Scenario is one upstream, its backends, and the requests that were sent, with
// what was recorded of each.
type Scenario struct {
	Name  string `json:"name"`
	Group string `json:"group"`
	// Kind is the behaviour that the scenario is about.
	Kind    string   `json:"kind"`
	Servers []Server `json:"servers"`
	// Method is the balancing method: "" (round robin), least_conn, hash (of
	// $arg_k), ip_hash or random.
	Method string `json:"method"`
	// NextUpstream holds the arguments of proxy_next_upstream.
	NextUpstream []string `json:"next_upstream"`
	Tries        int      `json:"tries"`

	Timeout        Milliseconds `json:"timeout_ms"`
	ConnectTimeout Milliseconds `json:"connect_timeout_ms"`
	SendTimeout    Milliseconds `json:"send_timeout_ms"`
	ReadTimeout    Milliseconds `json:"read_timeout_ms"`

	RequestBuffering bool `json:"request_buffering"`
	// Keepalive false: one connection per attempt, which the backend closes.
	Keepalive bool `json:"keepalive"`
	// Backends holds each backend's behaviours; the last one is never used up.
	Backends map[string][]string `json:"backends"`
	// Connections is how many connections each backend accepted.
	Connections map[string]int `json:"connections"`
	// Approx is about how long the scenario takes.
	Approx Milliseconds `json:"approx_ms"`
	Steps  []Step       `json:"steps"`
}

// Server is one server line. Its numbers are nginx's: a MaxFails of 0 is off.
type Server struct {
	ID       string `json:"id"`
	Weight   int    `json:"weight"`
	MaxFails int    `json:"max_fails"`
	// FailTimeout is in seconds.
	FailTimeout int  `json:"fail_timeout"`
	Backup      bool `json:"backup"`
	Down        bool `json:"down"`
	MaxConns    int  `json:"max_conns"`
}

// Step is one request.
type Step struct {
	// Wait is a pause before the step, after all earlier requests have ended.
	Wait Milliseconds `json:"wait_ms"`
	// Overlap, if set, starts the step this long after the start of the step
	// before it, without waiting for anything.
	Overlap Milliseconds `json:"overlap_ms"`
	// Set replaces behaviours before the request.
	Set     map[string][]string `json:"set"`
	Request Request             `json:"request"`
	Expect  Expect              `json:"expect"`
}

// Request is what the client sends.
type Request struct {
	Method  string `json:"method"`
	BodyLen int    `json:"body_len"`
	// BodyDelay sends the body this long after the header. 0: with it.
	BodyDelay Milliseconds `json:"body_delay_ms"`
	// Key is the argument k.
	Key string `json:"key"`
	// Src is the client's address. Empty: 127.0.0.1.
	Src string `json:"src"`
	// AbortAfter is when the client leaves, counted from its connect. 0: never.
	AbortAfter Milliseconds `json:"abort_after_ms"`
}

// Expect is what was recorded.
type Expect struct {
	// Status is what the client saw; HTTPStatus the code of a truncated answer.
	Status     Status `json:"status"`
	HTTPStatus int    `json:"http_status"`
	// ServedBy is the backend whose own answer the client got. Empty: the proxy's.
	ServedBy string `json:"served_by"`
	// Chain is $upstream_addr by backend, with NoLive where no peer could be
	// had; UpstreamStatus is $upstream_status, with 0 for none.
	Chain          []string `json:"chain"`
	UpstreamStatus []int    `json:"upstream_status"`
	// Executed is how many requests each backend received.
	Executed map[string]int `json:"executed"`
	Bodies   []Body         `json:"bodies"`
	// LogStatus is $status where it is not Status.
	LogStatus int `json:"log_status"`
}

// NoLive is in a chain where no peer was available.
const NoLive = "NOLIVE"

// Milliseconds is a duration, written as a number of milliseconds.
type Milliseconds int

// Duration returns m as a time.Duration.
func (m Milliseconds) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// Status is what a client saw: a status code in digits, or one of the words.
type Status string

// What a client can see beside a status code.
const (
	Truncated Status = "truncated" // a header came, but not all of the body
	Aborted   Status = "aborted"   // the client left
	HTTP09    Status = "http09"    // bytes that are no HTTP/1 answer
	Closed    Status = "closed"    // the connection was closed without a byte
	// Silent is never recorded: nothing ended within the time that the player
	// gives any request.
	Silent Status = "silent"
)

// UnmarshalJSON reads a code or a word.
func (s *Status) UnmarshalJSON(text []byte) error {
	if code, err := strconv.Atoi(string(text)); err == nil {
		*s = code2status(code)
		return nil
	}
	return json.Unmarshal(text, (*string)(s))
}

func code2status(code int) Status { return Status(strconv.Itoa(code)) }

// Body is how many bytes of a request's body a backend read.
type Body struct {
	Backend string
	// Bytes is unread where the body was not read to its end.
	Bytes int
}

const unread = -1

// UnmarshalJSON reads the pair of backend and bytes.
func (b *Body) UnmarshalJSON(text []byte) error {
	bytes := (*int)(nil)
	if err := json.Unmarshal(text, &[]any{&b.Backend, &bytes}); err != nil {
		return err
	}
	b.Bytes = unread
	if bytes != nil {
		b.Bytes = *bytes
	}
	return nil
}

// String formats b as it is recorded.
func (b Body) String() string {
	if b.Bytes == unread {
		return b.Backend + ":null"
	}
	return fmt.Sprintf("%s:%d", b.Backend, b.Bytes)
}

// Load reads all *.jsonl of a folder.
func Load(dir string) ([]*Scenario, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("redispatch: no *.jsonl in %s", dir)
	}
	var all []*Scenario
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("redispatch: %s: %w", file, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

func parse(text []byte) ([]*Scenario, error) {
	var all []*Scenario
	for number, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		sc := &Scenario{}
		if err := json.Unmarshal(line, sc); err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
		if err := sc.check(); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", number+1, sc.Name, err)
		}
		all = append(all, sc)
	}
	return all, nil
}

// check refuses what the player would not understand, so that no scenario is
// played as something else.
func (sc *Scenario) check() error {
	for _, srv := range sc.Servers {
		if len(sc.Backends[srv.ID]) == 0 {
			return fmt.Errorf("no behaviour for backend %q", srv.ID)
		}
	}
	queues := []map[string][]string{sc.Backends}
	for _, step := range sc.Steps {
		queues = append(queues, step.Set)
	}
	for _, byID := range queues {
		for id, queue := range byID {
			if _, known := sc.Backends[id]; !known {
				return fmt.Errorf("unknown backend %q", id)
			}
			if _, err := parseBehaviours(queue); err != nil {
				return err
			}
		}
	}
	return nil
}
