// Package model is nginx's upstream arithmetic written down literally: one
// plain loop per rule, no packing, no caching, no reuse for the sake of reuse.
// It is not meant to be used; it is meant to be held against the description
// of nginx, section by section (each function names its section), and then to
// run beside the product in property tests, which must never differ from it.
//
// Sections (§) are those of the description of nginx's semantics. A Balancer
// is one upstream block: a Config makes it, SetTime moves its clock, Begin
// starts a request, Get asks for a peer, Header, Connected and FirstByte report
// the events of the attempt, Free ends it, and State shows one peer.
//
// Whether an attempt may be repeated (§8) is the caller's to decide, and the set
// of peers never changes (§11).
//
// Nothing here may be shared between goroutines.
package model
