package balancer

import (
	"context"
	"net/http"

	"github.com/trunklb/trunk/peer"
)

// inputs makes the Input of requests. It is immutable.
type inputs struct {
	own    func(*http.Request) Input
	key    text // empty: the method wants none
	client bool // the method wants the client's address
	wanted bool // any of these
}

// newInputs reads the method's text. The error is a *VariableError.
func newInputs(c *Config) (inputs, error) {
	in := inputs{own: c.Input}
	method := peer.Describe(c.Method)
	in.client = method.Client
	var err error
	if in.key, err = compile(method.Key, c.Variables); err != nil {
		return in, err
	}
	in.wanted = in.own != nil || in.client || len(in.key) > 0
	return in, nil
}

// fill completes an input by Config.Input and the method's variables, in this
// order. r is nil outside HTTP.
func (i *inputs) fill(in Input, r *http.Request) Input {
	if i.own != nil && r != nil {
		own := i.own(r)
		if in.Key == "" {
			in.Key = own.Key
		}
		if !in.Client.IsValid() {
			in.Client = own.Client
		}
		if in.Hint == "" {
			in.Hint = own.Hint
		}
	}
	if i.client && !in.Client.IsValid() {
		in.Client = remoteAddr(r)
	}
	if in.Key == "" && len(i.key) > 0 {
		in.Key = i.key.eval(&scope{request: r, client: in.Client})
	}
	return in
}

// ofContext completes an input by what WithInput put into the context, and returns
// what else that brings along.
func (in Input) ofContext(ctx context.Context) (Input, *carry) {
	c := carried(ctx)
	if c == nil {
		return in, &noCarry
	}
	if in.Key == "" {
		in.Key = c.input.Key
	}
	if !in.Client.IsValid() {
		in.Client = c.input.Client
	}
	if in.Hint == "" {
		in.Hint = c.input.Hint
	}
	return in, c
}

var noCarry carry
