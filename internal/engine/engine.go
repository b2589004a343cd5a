// Package engine holds the one number by which peer chooses its engine, where
// tests can reach it: what is recorded must come out the same on both.
package engine

// ScanMost is the number of peers up to which a group is scanned; above it has
// queues, and from 8 times as many levels where loads are compared. It was measured
// (docs/performance.md). Only tests and benchmarks change it, while nothing else runs.
var ScanMost = 3
