// Package parity holds trunk to nginx: it replays the recordings of a real
// nginx against the product and against a literal model of nginx's text.
package parity
