package balancer

import "context"

// carry is what a context brings along, found in one look-up.
type carry struct {
	input     Input
	log       *AttemptLog
	decisions func(*Decision)
}

type carryKey struct{}

func carried(ctx context.Context) *carry {
	c, _ := ctx.Value(carryKey{}).(*carry)
	return c
}

// with returns a context that brings along what ctx does, but for the change.
func with(ctx context.Context, change func(*carry)) context.Context {
	c := &carry{}
	if old := carried(ctx); old != nil {
		*c = *old
	}
	change(c)
	return context.WithValue(ctx, carryKey{}, c)
}

// WithInput returns a context whose requests are balanced by in. It goes before
// Config.Input and the method's variables; the fields that in leaves empty
// come from these.
func WithInput(ctx context.Context, in Input) context.Context {
	return with(ctx, func(c *carry) { c.input = in })
}

// WithLog returns a context whose requests note their attempts in l.
func WithLog(ctx context.Context, l *AttemptLog) context.Context {
	return with(ctx, func(c *carry) { c.log = l })
}

// WithDecisions returns a context whose requests report to f how each of their peers was
// chosen. f is called like Explain.OnDecision, but nothing is redacted, and a panic
// of f is the request's own, which keeps no peer.
func WithDecisions(ctx context.Context, f func(*Decision)) context.Context {
	return with(ctx, func(c *carry) { c.decisions = f })
}
