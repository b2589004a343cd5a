//go:build nocaddy

package main

// caddys are left out: caddy takes minutes to compile the first time.
var caddys []contender
