// Package redis balances a real Redis client over real Redis servers with
// Upstream.DialContext.
package redis
