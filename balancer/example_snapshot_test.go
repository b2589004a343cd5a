package balancer_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"

	"github.com/trunklb/trunk/balancer"
)

// upstreams are at /debug/vars, by name.
var upstreams = expvar.NewMap("upstreams")

// The state of an upstream for whoever asks /debug/vars.
func ExampleUpstream_Snapshot() {
	up, err := balancer.New(context.Background(), balancer.Config{
		Name:    "backend",
		Servers: []balancer.Server{{Addr: "10.0.0.1:8080"}, {Addr: "10.0.0.2:8080"}},
	})
	if err != nil {
		panic(err)
	}
	defer up.Close()
	upstreams.Set(up.Name(), expvar.Func(func() any { return up.Snapshot() }))

	try := up.Start(context.Background(), balancer.Input{})
	try.Next()
	try.Done(errors.New("connection refused"))
	try.Next()
	try.Done(nil)

	var s struct {
		Requests, Retries uint64
		Peers             []struct {
			Server struct{ Addr string }
			Out    bool
			OK     int
		}
	}
	if err := json.Unmarshal([]byte(upstreams.Get("backend").String()), &s); err != nil {
		panic(err)
	}
	fmt.Println("requests", s.Requests, "retries", s.Retries)
	for _, p := range s.Peers {
		fmt.Println(p.Server.Addr, "ok", p.OK, "out", p.Out)
	}
	// Output:
	// requests 1 retries 1
	// 10.0.0.1:8080 ok 0 out true
	// 10.0.0.2:8080 ok 1 out false
}
