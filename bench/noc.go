//go:build !cgo

package main

// clangs: without cgo there is no loop in C.
var clangs []contender
