package balancertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Backends are the upstream's peers as scripts, without sockets: an
// http.RoundTripper to give to Upstream().RoundTripper. Goroutines may share it.
//
// It is a base that is no *http.Transport, with the limits that RoundTripper
// documents: no https, no unix sockets.
type Backends struct {
	kit     *kit
	mu      sync.Mutex
	scripts map[string][]Answer
	asked   []string
}

// defaultReadTimeout is nginx's proxy_read_timeout.
const defaultReadTimeout = 60 * time.Second

// Backends returns backends which all answer 200, with their names as the body.
func (lb *LB) Backends() *Backends {
	return &Backends{kit: lb.kit, scripts: map[string][]Answer{}}
}

// Script says what a backend does with the requests from now on, one answer after
// the other; the last one stays. It returns b. A name that no server has ends the test.
func (b *Backends) Script(name string, answers ...Answer) *Backends {
	b.kit.t.Helper()
	name = b.kit.known(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scripts[name] = append([]Answer(nil), answers...)
	return b
}

// Asked returns the backends that were asked since Asked or WantAsked was last
// called, in order.
func (b *Backends) Asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}

// WantAsked checks that since Asked or WantAsked was last called exactly these
// backends were asked, in this order: names separated by spaces.
func (b *Backends) WantAsked(want string) {
	b.kit.t.Helper()
	names := strings.Fields(want)
	for i, name := range names {
		names[i] = b.kit.known(name)
	}
	got := b.Asked()
	if strings.Join(names, " ") == strings.Join(got, " ") {
		return
	}
	first := 0
	for first < min(len(names), len(got)) && names[first] == got[first] {
		first++
	}
	why := "no other peer was asked"
	if first < len(got) {
		why = "it was decided so:\n  " + strings.ReplaceAll(b.kit.decisions.of(first, len(got)), "\n", "\n  ")
	}
	b.kit.t.Errorf("the wrong backends were asked, from the %s on:\n  want %s\n  got  %s\n%s",
		ordinal(first+1), strings.Join(names, " "), strings.Join(got, " "), why)
}

// RoundTrip implements http.RoundTripper.
func (b *Backends) RoundTrip(r *http.Request) (*http.Response, error) {
	name, ok := b.kit.byAddr(r.URL.Host)
	if !ok {
		closeBody(r)
		return nil, fmt.Errorf("balancertest: no backend %q: is the URL's host the upstream's name, %q?", r.URL.Host, b.kit.config.Name)
	}
	a := b.next(name)
	if a.Err == Refused {
		closeBody(r)
		return nil, b.late(r.Context(), &a)
	}
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		if a.Handler != nil {
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(data))
		}
	}
	if err := b.late(r.Context(), &a); err != nil {
		return nil, err
	}
	return a.response(name, r), nil
}

// late waits for the answer, and returns why there is none.
func (b *Backends) late(ctx context.Context, a *Answer) error {
	if err := b.kit.wait(ctx, a.Delay); err != nil {
		return err
	}
	if op := (*net.OpError)(nil); a.Err != nil && a.Err != Garbage && !errors.As(a.Err, &op) {
		// It happens on the connection: an error of the transport itself would end the request.
		return &net.OpError{Op: "read", Net: "tcp", Err: a.Err}
	}
	return a.Err
}

// next takes the backend's next answer.
func (b *Backends) next(name string) Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, name)
	script := b.scripts[name]
	if len(script) == 0 {
		return Answer{}
	}
	if len(script) > 1 {
		b.scripts[name] = script[1:]
	}
	return script[0]
}

// wait lets a backend's delay pass.
func (k *kit) wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limit := cmp.Or(k.config.Retry.ReadTimeout, defaultReadTimeout)
	if k.clock != nil {
		k.clock.advance(min(d, limit))
	} else {
		timer := time.NewTimer(min(d, limit))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if d > limit {
		return errTimeout
	}
	return nil
}

// byAddr finds the name of the peer with an address.
func (k *kit) byAddr(addr string) (name string, ok bool) {
	for _, s := range k.up.Snapshot().Peers {
		if s.Server.Addr == addr {
			return nameOf(s.Server), true
		}
	}
	return "", false
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}
