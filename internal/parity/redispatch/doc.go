//go:build linux

// Package redispatch plays recorded scenarios of retries and passive health
// against a proxy, over real sockets, and says where it differs from the nginx
// that was recorded.
//
// A [Scenario] is one upstream with scripted backends and the requests of its
// clients in order. [Play] starts the backends, has a [Start] function put the
// proxy under test in front of them, sends the requests, and compares what the
// clients saw, what the proxy says it did, and what reached each backend.
// [PlayAll] does so for many scenarios side by side.
//
// Backends and clients work on bare TCP: much of what is recorded (a reset in
// the middle of a header, an accept queue that is full, a client that leaves)
// cannot be said with net/http. They need Linux's behaviour at these corners.
package redispatch
