package parity

// The product that TestTraces, TestTables and TestRings judge.
var (
	product     Factory  = Product
	productRing RingFunc = ProductRing
)
