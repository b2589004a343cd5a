// Package engine holds the numbers by which peer chooses its engine, where
// tests can reach them: what is recorded must come out the same on both.
package engine

// ScanMost is the number of peers up to which a group is scanned; above it has
// queues, and from 8 times as many levels where loads are compared. It was measured
// (docs/performance.md). Only tests and benchmarks change it, while nothing else runs.
var ScanMost = 3

// MaxSteps is how many places from the end of a queue one is looked for before a peer
// goes into the heap beside it. It is for tests, too.
var MaxSteps = 4
