// Quickstart starts three backends on free ports of this machine, sends requests
// to them through an http.Client whose transport is trunk, kills one of the
// backends, brings it back, and shows which backend answered.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/trunklb/trunk/balancer"
	"github.com/trunklb/trunk/balancer/nginxconf"
)

// requests is how many are sent in each of the three phases.
const requests = 300

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	var backends []*backend
	for _, name := range []string{"a", "b", "c"} {
		b := &backend{name: name}
		if err := b.start("127.0.0.1:0"); err != nil {
			return err
		}
		defer b.kill()
		backends = append(backends, b)
	}
	a, b, c := backends[0], backends[1], backends[2]

	// The whole of trunk's part: an upstream block, and a transport of it.
	block := fmt.Sprintf(`upstream backend {
    server %s weight=2 fail_timeout=1s;  # a
    server %s weight=2 fail_timeout=1s;  # b
    server %s          fail_timeout=1s;  # c
}`, a.addr, b.addr, c.addr)
	up, err := nginxconf.NewUpstream(ctx, block)
	if err != nil {
		return err
	}
	defer up.Close()
	client := &http.Client{Transport: up.RoundTripper(nil)}

	fmt.Fprintf(out, "%s\n\n%d requests to http://backend/, three times; which backend answered:\n\n", block, requests)
	fmt.Fprintf(out, "%-26s %5s %5s %5s %12s %6s\n", "", "a", "b", "c", "retried", "failed")
	phase := func(title string) {
		t := send(ctx, client)
		fmt.Fprintf(out, "%-26s %5d %5d %5d %12d %6d\n", title, t.answered["a"], t.answered["b"], t.answered["c"], t.retried, t.failed)
	}

	phase("before: all are up")
	b.kill()
	phase("during: b is dead")
	if err := b.start(b.addr); err != nil {
		return err
	}
	// A peer that has failed gets its next chance after fail_timeout, counted
	// in whole seconds as nginx does.
	time.Sleep(2100 * time.Millisecond)
	phase("after:  b is back")

	fmt.Fprint(out, `
While b was dead no request failed: the first one sent to b was retried on
another backend, and b was left alone for its fail_timeout. Then it was tried
again, and has its share of two fifths back.
`)
	return nil
}

// tally counts the answers by backend.
type tally struct {
	answered map[string]int
	retried  int // requests that one peer failed and another answered
	failed   int // requests without an answer
}

func send(ctx context.Context, client *http.Client) tally {
	t := tally{answered: map[string]int{}}
	for range requests {
		log := &balancer.AttemptLog{} // optional: the peers that were asked
		name, err := get(balancer.WithLog(ctx, log), client)
		if err != nil {
			t.failed++
			continue
		}
		t.answered[name]++
		if len(log.Attempts()) > 1 {
			t.retried++
		}
	}
	return t
}

func get(ctx context.Context, client *http.Client) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://backend/", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	name, err := io.ReadAll(resp.Body)
	return string(name), err
}
