package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/go-kratos/kratos/v2/registry"
	"github.com/go-kratos/kratos/v2/selector"
	"github.com/go-kratos/kratos/v2/selector/p2c"
	"github.com/go-kratos/kratos/v2/selector/wrr"
)

func kratosWRR(s scenario) (target, error) { return newKratos(s, wrr.New()), nil }
func kratosP2C(s scenario) (target, error) { return newKratos(s, p2c.New()), nil }

func newKratos(s scenario, sel selector.Selector) target {
	var nodes []selector.Node
	for i, w := range s.weights.list(s.n) {
		nodes = append(nodes, selector.NewNode("http", addr(i),
			&registry.ServiceInstance{Metadata: map[string]string{"weight": strconv.Itoa(w)}}))
	}
	sel.Apply(nodes)
	return &kratosTarget{selector: sel, course: s.course()}
}

type kratosTarget struct {
	selector selector.Selector
	*course
	held [burst]selector.DoneFunc
}

var errFailed = errors.New("failed")

func (t *kratosTarget) worker() func(requests int) {
	ctx := context.Background()
	return func(requests int) {
		for range requests {
			var info selector.DoneInfo
			if t.fails() {
				info.Err = errFailed
			}
			if t.retry { // it may well be the same node again
				_, done, err := t.selector.Select(ctx)
				must(err)
				done(ctx, selector.DoneInfo{})
			}
			_, done, err := t.selector.Select(ctx)
			must(err)
			done(ctx, info)
		}
	}
}

func (t *kratosTarget) pick(held int) int {
	_, done, err := t.selector.Select(context.Background())
	must(err)
	t.held[held] = done
	return held
}

func (t *kratosTarget) done(held, _ int) { t.held[held](context.Background(), selector.DoneInfo{}) }
