// Package machine runs the literal model beside the product.
//
// A Config is one upstream in the product's words and in the model's. A Machine
// makes it twice, gives both the same clock, the same random numbers and the
// same calls, and after every step demands that they agree: on the peer that
// was picked, on the tries that are left, and on every field of every peer.
//
// In place of the model there may be a twin: the same upstream with the other
// engine, through what the model does not know (CheckTwins).
//
// What is done next is decided by a Choose, so that one machine serves property
// tests (Check, with rapid's choices) and fuzz targets (Fuzz, with bytes).
//
// A Trial is for tests that are read as texts: the product alone, of servers
// written as nginx's server lines, on a clock that the test sets.
//
// The package is for tests only.
package machine
